"""An error for people: what went wrong, where, and what to do."""

import inspect

import pytest

from omnigraph import errors
from omnigraph.cli.report import report

KINDS = [
    kind
    for _, kind in sorted(vars(errors).items())
    if inspect.isclass(kind) and issubclass(kind, errors.GraphError) and kind is not errors.GraphError
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_error_tells_what_where_and_what_to_do(kind: type[errors.GraphError]) -> None:
    first, where, then = report(kind("it went wrong"), where="./library", command="load").splitlines()
    assert first.startswith("error: ")
    assert "it went wrong" in first
    assert where == "   at: ./library"
    assert then.startswith("  try: ")
    assert len(then) > len("  try: ")


def test_a_message_that_says_what_to_do_is_followed_by_no_other_advice() -> None:
    error = errors.InvalidRequestError("which graph? give --store URI", code="no_address")
    assert report(error, where=None, command="query") == "error: which graph? give --store URI"


def test_notes_come_last() -> None:
    error = errors.UnavailableError("nobody answers")
    error.add_note("the third time")
    assert report(error, where=None).splitlines()[-1] == " note: the third time"
