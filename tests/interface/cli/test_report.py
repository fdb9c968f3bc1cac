"""An error for people: what went wrong, where, and what to do."""

import inspect

import pytest

from omnigraph import errors
from omnigraph.cli.report import report
from omnigraph.storage.object_store import StoreRefused

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


@pytest.mark.parametrize(
    ("error", "then"),
    [
        (errors.NotFoundError("no file to load at x.jsonl", code="data_not_found"), "check the path"),
        (
            errors.UnavailableError("there is no answer at http://h", code="no_answer"),
            "check that the server is running",
        ),
        (StoreRefused("no store is known for ftp:// addresses", path="ftp://x"), "check the address"),
        (errors.InvalidRequestError("it is no YAML", code="bad_configuration"), "correct the file"),
        (errors.InvalidRequestError("it cannot be written", code="output_unwritable"), "name another file with --out"),
    ],
    ids=lambda each: each.code if isinstance(each, errors.GraphError) else "",
)
def test_the_advice_is_about_what_went_wrong(error: errors.GraphError, then: str) -> None:
    assert report(error, where="./library", command="viz query").splitlines()[-1].startswith(f"  try: {then}")


def test_words_of_a_load_that_are_wrong_are_no_matter_of_its_records() -> None:
    wrong = errors.InvalidRequestError("people.csv holds rows of one type: name a node type", code="load_option")
    assert report(wrong, where="./library", command="load").endswith("  try: see the arguments: omnigraph load --help")
    record = errors.InvalidRequestError("line 2: strict property 'age' expects Int32")
    assert report(record, where="./library", command="load").endswith("skip bad records with --rejects DIR")


def test_an_error_of_the_machine_tells_where_and_what_to_do_too() -> None:
    first, where, then = report(OSError(28, "No space left on device"), where="./library").splitlines()
    assert first == "error: No space left on device"
    assert where == "   at: ./library"
    assert then.startswith("  try: ")


def test_an_error_of_the_machine_names_the_file_it_is_about() -> None:
    told = report(FileNotFoundError(2, "No such file or directory", "a.gq"), where=None)
    assert told.startswith("error: No such file or directory: a.gq\n")


def test_notes_come_last() -> None:
    error = errors.UnavailableError("nobody answers")
    error.add_note("the third time")
    assert report(error, where=None).splitlines()[-1] == " note: the third time"
