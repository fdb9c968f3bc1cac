"""Arguments of the wrong kind are told before anything happens, and nothing of them gets into a record."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, OpenOptions
from omnigraph.storage.object_store import StoreRefused

SCHEMA = "node Person { name: String @key }"
FAST = OpenOptions(durability="process")
INSERT = 'query add() { insert Person { name: "Ada" } }'
NAMES = "query names() { match { $p: Person } return { $p.name as name } }"
RECORD = b'{"type": "Person", "data": {"name": "Ada"}}'
HALF = "\ud800"

# Whatever makes an entry and says who did it.
WRITES: dict[str, Callable[..., object]] = {
    "mutate": lambda graph, **said: graph.mutate(INSERT, **said),
    "write": lambda graph, **said: graph.write({"Person": [{"name": "Ada"}]}, **said),
    "schema_apply": lambda graph, **said: graph.schema_apply(SCHEMA + " node Place { name: String }", **said),
    "load": lambda graph, **said: graph.load(RECORD, mode="merge", engine="local", **said),
    "merge": lambda graph, **said: graph.merge("side", **said),
    "branch": lambda graph, **said: graph.branches.create("new", **said),
    "delete": lambda graph, **said: graph.branches.delete("side", **said),
    "tag": lambda graph, **said: graph.tags.create("new", **said),
    "prune": lambda graph, **said: graph.prune(keep=1, now=True, **said),
}


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as made:
        made.branches.create("side")
        made.write({"Person": [{"name": "Bob"}]}, branch="side")
        made.write({"Person": [{"name": "Cid"}]})
        yield made


def state(graph: Graph) -> tuple[object, ...]:
    return graph.snapshot().number, sorted(graph.branches.list()), list(graph.tags.list())


@pytest.mark.parametrize("write", WRITES)
def test_an_actor_that_is_no_text_is_refused_by_every_write(graph: Graph, write: str) -> None:
    before = state(graph)
    for actor, told in [
        (5, "the actor must be a text, got int"),
        (["ann"], "the actor must be a text, got list"),
        (b"ann", "the actor must be a text, got bytes"),
        (HALF, "the actor '\\ud800' holds half of a surrogate pair"),
    ]:
        with pytest.raises(InvalidRequestError) as refused:
            WRITES[write](graph, actor=actor)
        assert refused.value.message == told
    assert state(graph) == before
    WRITES[write](graph, actor="ann")
    assert state(graph) != before


@pytest.mark.parametrize("write", ["mutate", "write", "schema_apply", "load"])
def test_what_is_said_of_a_write_must_be_text(graph: Graph, write: str) -> None:
    before = state(graph)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"message": 5}, "the message must be a text, got int"),
        ({"message": {"why": "so"}}, "the message must be a text, got dict"),
        ({"message": HALF}, "the message '\\ud800' holds half of a surrogate pair"),
        ({"idempotency_key": 5}, "an idempotency key must be a text, got int"),
        ({"branch": 5}, "branch name must be a text, got int"),
        ({"branch": None}, "branch name must be a text, got NoneType"),
    ]
    for said, told in wrong:
        with pytest.raises(InvalidRequestError) as refused:
            WRITES[write](graph, **said)
        assert refused.value.message == told
    assert state(graph) == before


def test_a_graph_is_not_made_by_nobody(tmp_path: Path) -> None:
    unsaid: Any = 5
    with pytest.raises(InvalidRequestError, match="the actor must be a text, got int"):
        omnigraph.init(tmp_path / "graph", SCHEMA, actor=unsaid, options=FAST)
    with pytest.raises(InvalidRequestError, match=r"schema\.pg must be a text, got NoneType"):
        omnigraph.init(tmp_path / "graph", None, options=FAST)  # type: ignore[arg-type]  # the mistake under test
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ask", ["query", "mutate", "explain", "stream", "prepare"])
def test_a_query_that_is_no_text_is_refused(graph: Graph, ask: str) -> None:
    for query in (None, 5, b"query", [NAMES]):
        with pytest.raises(InvalidRequestError) as refused:
            getattr(graph, ask)(query)
        assert refused.value.message == f"a query is a text or a prepared one, got {type(query).__name__}"


@pytest.mark.parametrize("what", ["nodes", "edges"])
def test_rows_that_name_no_type_are_refused(graph: Graph, what: str) -> None:
    for given in (None, [{"name": "Ada"}], "Person"):
        with pytest.raises(InvalidRequestError, match=f"^{what} must be rows by type, .* got {type(given).__name__}$"):
            graph.write(**{what: given})  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize("address", [None, 5, b"graph"], ids=str)
@pytest.mark.parametrize("call", [omnigraph.open, omnigraph.verify, lambda uri: omnigraph.init(uri, SCHEMA)])
def test_an_address_that_is_none_is_refused(call: Callable[[Any], object], address: object) -> None:
    with pytest.raises(InvalidRequestError, match=f"a text, a path or a store, got {type(address).__name__}"):
        call(address)


def test_an_address_with_a_nul_in_it_is_refused() -> None:
    with pytest.raises(StoreRefused, match="no NUL character"):
        omnigraph.open("graph\0")


def test_an_unknown_durability_is_refused_and_the_known_ones_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="unknown durability 'tape'; it is 'power' or 'process'"):
        omnigraph.init(tmp_path / "graph", SCHEMA, options=OpenOptions(durability="tape"))
    assert not list(tmp_path.iterdir())


# Whatever is asked for an amount, a place or a state.
ASKED: dict[str, Callable[[Graph, Any], object]] = {
    "keep": lambda graph, said: graph.prune(keep=said, now=True),
    "prune older than": lambda graph, said: graph.prune(older_than=said, now=True),
    "cleanup keep": lambda graph, said: graph.cleanup(keep=said, confirm=True),
    "sweep older than": lambda graph, said: graph.sweep(older_than=said),
    "commits": lambda graph, said: graph.commits.list(limit=said),
    "branches": lambda graph, said: graph.branches.list(limit=said),
    "changes": lambda graph, said: graph.changes.poll(limit=said),
    "number": lambda graph, said: graph.snapshot(number=said),
}
AMOUNTS: dict[str, object] = {"nan": float("nan"), "endless": float("inf"), "text": "3", "flag": True, "bytes": b"3"}
STATES: dict[str, Callable[[Graph, Any], object]] = {
    "commit": lambda graph, said: graph.snapshot(commit=said),
    "tag": lambda graph, said: graph.snapshot(tag=said),
    "at": lambda graph, said: graph.snapshot(at=said),
    "since": lambda graph, said: graph.commits.list(since=said),
    "show": lambda graph, said: graph.commits.show(said),
    "diff": lambda graph, said: graph.diff(said, "main"),
    "revert": lambda graph, said: graph.revert(said),
    "revert a range": lambda graph, said: graph.revert((said, said)),
}


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("asked", ASKED)
def test_an_amount_that_counts_nothing_is_refused(graph: Graph, asked: str, amount: str) -> None:
    before, listed = state(graph), [each.id for each in graph.commits.list()]
    with pytest.raises(InvalidRequestError, match="must be"):
        ASKED[asked](graph, AMOUNTS[amount])
    assert (state(graph), [each.id for each in graph.commits.list()]) == (before, listed)


@pytest.mark.parametrize("asked", STATES)
def test_a_state_that_is_no_text_is_refused(graph: Graph, asked: str) -> None:
    for wrong in (5, b"main", ["main"]):
        with pytest.raises(InvalidRequestError):
            STATES[asked](graph, wrong)


@pytest.mark.parametrize("window", [-1.0, float("nan"), "10m"])
def test_a_protection_window_that_is_no_time_is_refused(window: Any) -> None:  # noqa: ANN401  (any kind)
    with pytest.raises(InvalidRequestError, match="the protection window"):
        omnigraph.init("memory://", SCHEMA, options=OpenOptions(protection_s=window))


def test_a_long_load_is_refused_before_it_reads_anything(graph: Graph, tmp_path: Path) -> None:
    nobody: Any = 5
    with pytest.raises(InvalidRequestError, match="the actor must be a text, got int"):
        graph.load(tmp_path / "nothing.jsonl", mode="merge", engine="spark", actor=nobody)


WITH_BLOB = "node Page { name: String @key  face: Blob? }"


@pytest.fixture(scope="module")
def pages() -> Iterator[Graph]:
    with omnigraph.init("memory://", WITH_BLOB, options=FAST) as made:
        made.write({"Page": [{"name": "a", "face": b"0123456789"}]})
        yield made


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("wrong", [5, None, b"a", ["a"], {"a": 1}, 1.5, HALF], ids=repr)
def test_a_blob_is_named_by_texts(pages: Graph, place: int, wrong: Any) -> None:  # noqa: ANN401  (any kind)
    named: list[Any] = ["node", "Page", "a", "face"]
    named[place] = wrong
    with pytest.raises(InvalidRequestError, match=r"must be a text|half of a surrogate pair") as refused:
        pages.blob(*named)
    assert refused.value.message.startswith(("entity", "the name of a type", "id", "property")[place])


@pytest.mark.parametrize("wrong", [1.5, "1", True, float("nan"), b"1", [1]], ids=repr)
def test_a_range_of_a_blob_is_of_whole_numbers(pages: Graph, wrong: Any) -> None:  # noqa: ANN401  (any kind)
    blob = pages.blob("node", "Page", "a", "face")
    for read in (blob.read, lambda *given: b"".join(blob.stream(*given))):
        with pytest.raises(InvalidRequestError, match=r"^offset must be a whole number"):
            read(wrong)
        with pytest.raises(InvalidRequestError, match=r"^length must be a whole number"):
            read(0, wrong)
    with pytest.raises(InvalidRequestError, match=r"^offset must be a whole number"):
        blob.read(None)  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize(("start", "length"), [(-1, None), (0, -1), (11, None), (11, 0), (2**70, None)])
def test_a_range_outside_a_blob_is_refused_and_one_beyond_its_end_ends_there(
    pages: Graph, start: int, length: int | None
) -> None:
    blob = pages.blob("node", "Page", "a", "face")
    with pytest.raises(InvalidRequestError) as refused:
        blob.read(start, length)
    assert refused.value.code == "blob_range"
    assert (blob.read(7, 2**70), blob.read(10), blob.read(10, 0)) == (b"789", b"", b"")


@pytest.mark.parametrize("wrong", [5, None, b"node A {}", ["node A {}"], {}], ids=repr)
def test_a_schema_is_a_text_and_what_is_allowed_is_true_or_false(graph: Graph, wrong: Any) -> None:  # noqa: ANN401  (any kind)
    before = state(graph)
    for act in (graph.schema_plan, graph.schema_apply, lambda text: omnigraph.init("memory://", text)):
        with pytest.raises(InvalidRequestError, match=rf"^schema\.pg must be a text, got {type(wrong).__name__}$"):
            act(wrong)
    for said in ("allow_data_loss", "validated"):
        for flag in (wrong, "false", 1):
            given: dict[str, Any] = {said: flag}
            for change in (graph.schema_plan, graph.schema_apply):
                with pytest.raises(InvalidRequestError, match=f"^{said} must be true or false, got "):
                    change(SCHEMA, **given)
    assert state(graph) == before
