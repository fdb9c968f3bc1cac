"""Arguments of the wrong kind are refused in words: by an open graph, and by one on a server before it is asked."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import pytest

import omnigraph
from omnigraph import OpenOptions, errors

SCHEMA = "node Person { name: String @key }"
# What calls take, by the kind of each argument; what is right for a kind, and what is not.
_FILTER = {"kinds": "texts", "types": "texts", "ops": "texts"}
_STATE = {"branch": "text?", "commit": "text?", "number": "number", "tag": "text?", "at": "time"}
_SAID = {"actor": "text?", "message": "text?", "if_commit": "text?"}
CALLS: dict[str, dict[str, str]] = {
    "branches.create": {"name": "text", "source": "text?", "actor": "text?", "number": "number", "at": "time"},
    "branches.delete": {"name": "text", "actor": "text?", "if_commit": "text?"},
    "branches.list": {"limit": "number", "page_token": "text?"},
    "tags.create": {"name": "text", "branch": "text?", "commit": "text?", "number": "number", "at": "time"},
    "tags.read": {"name": "text"},
    "tags.delete": {"name": "text"},
    "tags.list": {"limit": "number", "page_token": "text?"},
    "commits.list": {
        "branch": "text",
        "actor": "text?",
        "kind": "text?",
        "since": "time",
        "until": "time",
        "limit": "number",
        "page_token": "text?",
    },
    "commits.show": {"commit": "text"},
    "commits.changes": {"commit": "text", "limit": "number", "max_bytes": "number", "page_token": "text?", **_FILTER},
    "changes.poll": {
        "branch": "text",
        "cursor": "text?",
        "start": "text?",
        "page_token": "text?",
        "limit": "number",
        "max_bytes": "number",
        "max_commits": "number",
        **_FILTER,
    },
    "changes.drain": {"branch": "text", "cursor": "text?", "start": "text?", "limit": "number", **_FILTER},
    "changes.baseline": {"branch": "text", **_FILTER},
    "diff": {"older": "state", "newer": "state", **_FILTER},
    "merge": {
        "source": "text",
        "into": "text",
        "by": "text",
        "prefer": "text?",
        "preview": "flag",
        "delete_branch": "flag",
        "if_source_commit": "text?",
        "prune_previous": "flag",
        **_SAID,
    },
    "revert": {"commit": "state", "branch": "text", "idempotency_key": "text?", "prune_previous": "flag", **_SAID},
    "log_of": {"type_name": "text", "entity_id": "text", "branch": "text", "limit": "number"},
    "blame": {"type_name": "text", "entity_id": "text", "branch": "text"},
    "neighbourhood": {"type_name": "text", "entity_id": "text", "edges": "texts", **_STATE},
    "count": {"type_name": "text", **_STATE},
    "snapshot": _STATE,
    "schema": {"branch": "text?"},
    "schema_text": {"branch": "text?"},
    "export_lines": {"types": "texts?", **_STATE},
}
GOOD: dict[str, object] = {
    "text": "no such",
    "text?": None,
    "number": None,
    "texts": (),
    "texts?": None,
    "time": None,
    "flag": False,
    "state": "no such",
}
TOLD = "must be|is a text or a datetime|half of a surrogate pair|half a surrogate pair"
_NO_TEXT: list[object] = [5, b"main", ["main"], 1.5, object(), {"a": 1}, "\ud800"]
_NO_NUMBER: list[object] = ["1", b"1", 1.5, True, [1], object()]
WRONG_FOR: dict[str, list[object]] = {
    "text": [*_NO_TEXT, None],
    "text?": _NO_TEXT,
    "number": _NO_NUMBER,
    "texts": [5, b"node", [5], None, object()],
    "texts?": [5, b"node", [5], object()],
    "time": [5, b"2026", ["2026"], object()],
    "flag": [None, 1, "yes", object()],
    "state": [],
}


@pytest.fixture(params=["open", "served"])
def graph(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A graph; nobody is where the one on a server would be."""
    if request.param == "served":
        with omnigraph.connect("http://127.0.0.1:9", graph="library") as there:
            yield there
    else:
        with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as here:
            yield here


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_of_the_wrong_kind_is_refused_in_words(graph: Any, call: str) -> None:  # noqa: ANN401  (either)
    method: Callable[..., object] = attrgetter(call)(graph)
    right = {name: GOOD[kind] for name, kind in CALLS[call].items() if GOOD[kind] is not None}
    for name, kind in CALLS[call].items():
        for wrong in WRONG_FOR[kind]:
            with pytest.raises(errors.InvalidRequestError, match=TOLD):
                method(**{**right, name: wrong})


@pytest.mark.parametrize("wrong", [5, None, ("a",), (1, 2), ["a", "b"], b"a"], ids=repr)
def test_what_is_undone_is_a_commit_or_the_ends_of_a_range(graph: Any, wrong: object) -> None:  # noqa: ANN401  (either)
    with pytest.raises(errors.InvalidRequestError, match="a commit"):
        graph.revert(wrong)


@pytest.mark.parametrize("wrong", [5, None, b"main", ["main"]], ids=repr)
def test_a_state_is_named_by_a_text_a_point_or_a_snapshot(graph: Any, wrong: object) -> None:  # noqa: ANN401  (either)
    with pytest.raises(errors.InvalidRequestError, match=f"a state must be a text, got {type(wrong).__name__}"):
        graph.diff(wrong, "main")


def test_one_argument_too_many_is_no_other_kind_of_mistake(graph: Any) -> None:  # noqa: ANN401  (either)
    with pytest.raises(TypeError, match="positional argument"):
        graph.blame("Person", "Ada", "main")
    with pytest.raises(TypeError, match="unexpected keyword"):
        graph.blame("Person", "Ada", brunch="main")
