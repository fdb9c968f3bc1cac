"""Errors that a server answers with are the errors that an open graph raises."""

import json

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.client.failures import error_of_answer
from omnigraph.model.conflict import (
    ExpectedVersionMismatch,
    KeyConflict,
    MergeConflict,
    MergeConflictKind,
    ReadSetChanged,
    RevertConflict,
    RevertConflictKind,
)
from omnigraph.server.errors import Refusal, error_response

RAISED: tuple[errors.GraphError, ...] = (
    errors.InvalidRequestError("no", code="no_such_type"),
    errors.InvalidRequestError("out", code="blob_range", start=9, end=10, length=5),
    errors.ParseError(
        "unknown `x`", stage="type", line=3, column=7, report=" --> 3:7\n  = hint: say `y`", hint="say `y`"
    ),
    errors.ParseError("no more", stage="parse"),
    errors.ConstraintError("@unique violation"),
    errors.NotFoundError("branch 'x' not found", code="branch_not_found"),
    errors.ReclaimedError("pruned"),
    errors.ChangeGapError("gap", cursor="c", first_unreadable_commit_id="01J"),
    errors.AlreadyExistsError("there", code="branch_exists"),
    errors.ConflictError("busy", code="too_busy"),
    errors.ConflictError("taken", code="key_conflict", conflicts=(KeyConflict("node:Author", "Lem"),)),
    errors.ConflictError("moved", code="read_set_conflict", conflicts=(ReadSetChanged("node:Author", "01A", "01B"),)),
    errors.ConflictError("expected", code="version_mismatch", conflicts=(ExpectedVersionMismatch("edge:Wrote", 3, 4),)),
    errors.MergeConflictError(
        "merge conflicts",
        conflicts=(
            MergeConflict(MergeConflictKind.DIVERGENT_UPDATE, "node:Author", "Lem", "both"),
            MergeConflict(MergeConflictKind.DIVERGENT_SCHEMA, "schema", None, "both schemas"),
        ),
    ),
    errors.RevertConflictError(
        "cannot", conflicts=(RevertConflict(RevertConflictKind.CHANGED_SINCE, "edge:Wrote", "w1", "since"),)
    ),
    errors.ChangeRefusedError("refused", reason="schema_boundary", commit="01J", type_name="Author"),
    errors.PreconditionError("lost", expected="01A", actual="01B"),
    errors.OutcomeUnknownError("nobody knows"),
    errors.LimitError("large", code="resource_limit", resource="rows", limit=1, actual=2),
    errors.UnavailableError("later"),
    errors.ClockError("ahead"),
    errors.BlobSourceError("gone", uri="s3://b/k", reason="not there"),
    errors.PermissionDeniedError("read-only", code="read_only"),
    errors.FormatError("newer"),
    errors.InternalError("ours"),
)


def test_every_class_of_errors_is_tried() -> None:
    every = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.GraphError)}
    assert every - {type(each) for each in RAISED} == {errors.GraphError}


@pytest.mark.parametrize("error", RAISED, ids=lambda error: f"{type(error).__name__}-{error.code}")
def test_an_error_comes_through_as_it_was_raised(error: errors.GraphError) -> None:
    status, body = error_response(error)

    found = error_of_answer(status, json.dumps(body).encode())

    assert type(found) is type(error)
    assert (str(found), found.message, found.code) == (str(error), error.message, error.code)
    assert getattr(found, "conflicts", ()) == getattr(error, "conflicts", ())
    assert found.details == error.details
    for name in ("line", "column", "stage", "hint", "report", "reason"):
        assert getattr(found, name, None) == getattr(error, name, None)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, errors.InvalidRequestError, "bad_request"),
        (401, errors.PermissionDeniedError, "unauthorized"),
        (403, errors.PermissionDeniedError, "forbidden"),
        (404, errors.NotFoundError, "not_found"),
        (409, errors.ConflictError, "conflict"),
        (413, errors.LimitError, "resource_limit"),
        (415, errors.InvalidRequestError, "bad_request"),
        (416, errors.InvalidRequestError, "blob_range"),
        (429, errors.UnavailableError, "too_many_requests"),
        (500, errors.InternalError, "internal"),
        (503, errors.UnavailableError, "unavailable"),
    ],
)
def test_what_the_server_itself_refuses_is_told_by_its_status(
    status: int, kind: type[errors.GraphError], code: str
) -> None:
    found = error_of_answer(status, json.dumps(Refusal(status, "no").body()).encode())

    assert type(found) is kind
    assert (found.code, str(found)) == (code, "no")


def test_an_answer_of_somebody_else_is_told_as_such() -> None:
    for content in (b"<html>gateway</html>", b"", b"[]", b'"text"'):
        assert type(error_of_answer(502, content)) is errors.UnavailableError
        found = error_of_answer(418, content)
        assert type(found) is errors.InvalidRequestError
        assert "status 418 and is not from an omnigraph server" in str(found)


@pytest.mark.parametrize("token", ["schlüssel", "two words", "two\nlines", ""])
def test_a_token_that_no_request_can_carry_is_refused_before_anything_is_asked(token: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match="one word of printable ASCII") as refused:
        omnigraph.connect("http://127.0.0.1:1", token=token)
    assert not token or token not in str(refused.value)
