import inspect
import pickle

import pytest

from omnigraph import errors
from omnigraph.errors import (
    ConflictError,
    ConstraintError,
    FormatError,
    GraphError,
    InvalidRequestError,
    NotFoundError,
    ParseError,
    PermissionDeniedError,
)
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
)

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, GraphError)]  # type: list[type[GraphError]]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_a_graph_error_with_a_code_of_its_own(kind: type[GraphError]) -> None:
    raised = kind("what happened")
    assert isinstance(raised, GraphError)
    assert raised.message == "what happened"
    assert raised.code
    same_code = [each for each in CLASSES if each.code == kind.code]
    assert same_code == [kind]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_survives_travelling_to_another_process(kind: type[GraphError]) -> None:
    raised = kind("what happened")
    again = pickle.loads(pickle.dumps(raised))
    assert (type(again), str(again), again.code) == (kind, str(raised), raised.code)


def test_details_and_a_finer_code_are_kept() -> None:
    raised = FormatError("newer", code="format_newer", found=2, maximum=1)
    assert (raised.code, raised.details) == ("format_newer", {"found": 2, "maximum": 1})
    assert FormatError("x").code == "format"


def test_the_families_python_has_for_them_catch_them_too() -> None:
    for kind, family in (
        (InvalidRequestError, ValueError),
        (ConstraintError, ValueError),
        (NotFoundError, LookupError),
        (PermissionDeniedError, PermissionError),
    ):
        assert issubclass(kind, family)


def test_a_conflict_carries_what_stands_in_the_way() -> None:
    assert ConflictError("x").conflicts == ()
    assert ConflictError("x", conflicts=(1, 2)).conflicts == (1, 2)


def test_a_mistake_in_a_text_is_told_with_its_place() -> None:
    raised = ParseError("unexpected end", stage="type", line=2, column=5, report="2 | ab\n  |  ^")
    assert str(raised) == "type error: unexpected end\n2 | ab\n  |  ^"
    assert (raised.code, raised.line, raised.column) == ("type_error", 2, 5)


ANSWERS = [ObjectNotFound, ObjectExists, StoreTransient, StoreRefused, OutcomeUnknown]


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_answer_of_a_store_survives_travelling_to_another_process(kind: type[StoreError]) -> None:
    again = pickle.loads(pickle.dumps(kind("no", path="a/b")))
    assert (type(again), str(again), again.path, again.details) == (kind, "no", "a/b", {"path": "a/b"})


@pytest.mark.parametrize(
    ("answer", "family"),
    [
        (ObjectNotFound, errors.NotFoundError),
        (ObjectExists, errors.AlreadyExistsError),
        (StoreTransient, errors.UnavailableError),
        (StoreRefused, errors.UnavailableError),
        (OutcomeUnknown, errors.OutcomeUnknownError),
    ],
    ids=lambda kind: kind.__name__,
)
def test_what_a_store_answers_is_what_a_caller_of_the_graph_meets(
    answer: type[GraphError], family: type[GraphError]
) -> None:
    raised = answer("no", path="a/b")
    assert isinstance(raised, family)
    assert raised.details == {"path": "a/b"}
    assert raised.code == family.code
