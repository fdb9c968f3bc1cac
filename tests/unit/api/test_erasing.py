"""Values that shall leave the store: pruned commits by name, deleted rows, and dropped data, under default options."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.branch.entity_change import Op
from omnigraph.errors import InvalidRequestError, ReclaimedError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage.object_store import ObjectStore

SCHEMA = """\
node Person { name: String @key  note: String? @index  bio: String? }
edge Knows: Person -> Person { word: String? }
"""
SECRET = "xyzzy-1815"
WORD = b"xyzzy"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def on_disk(graph: Graph) -> list[Path]:
    return [path for path in Path(graph.uri).rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def write(graph: Graph, branch: str = "main", **notes: str | None) -> str:
    people = [{"name": name, "note": note} for name, note in notes.items()]
    commit = graph.write({"Person": people}, mode="merge", branch=branch).commit
    assert commit is not None
    return commit


def delete(graph: Graph, where: str) -> str:
    commit = graph.mutate(f"query q() {{ delete Person where {where} }}").commit
    assert commit is not None
    return commit


def people(graph: Graph, **at: str | None) -> dict[str, str | None]:
    at_point: dict[str, Any] = {**at}
    rows = graph.query("query q() { match { $p: Person } return { $p.name as name, $p.note as note } }", **at_point)
    return {row["name"]: row["note"] for row in rows.to_pylist()}


def check(graph: Graph) -> None:
    assert graph.verify(deep=True).findings == ()
    assert graph.sweep(older_than=0).deleted_files == 0
    with omnigraph.open(graph.uri) as fresh:
        for commit in fresh.commits.list():
            assert people(fresh, commit=commit.id) == people(graph, commit=commit.id)


def test_commits_that_are_named_and_pruned_now_leave_nothing(graph: Graph) -> None:
    write(graph, Ada="fine")
    held = [write(graph, Bob=SECRET), write(graph, Cid="more")]
    graph.sweep(older_than=0)  # its barrier shows the same versions
    after = write(graph, Bob="better")
    write(graph, Dan="last")
    assert on_disk(graph)

    report = graph.prune(commits=held, now=True)
    graph.sweep(older_than=0)

    assert (report.marked, report.waiting, report.shared_with) == (2, 0, ())
    assert on_disk(graph) == []
    assert people(graph, commit=after) == {"Ada": "fine", "Bob": "better", "Cid": "more"}
    for commit in held:
        with pytest.raises(ReclaimedError):
            people(graph, commit=commit)
    assert {event.commit for event in graph.log_of("Person", "Bob")} == {after}, "no other commit is blamed for it"
    check(graph)


def test_files_that_later_commits_share_are_rewritten_and_those_commits_named(graph: Graph) -> None:
    first = write(graph, Ada="fine", Bob=SECRET, Cid="more")
    deleting = graph.mutate('query q() { delete Person where name = "Bob" }').commit
    last = write(graph, Dan="last")

    report = graph.prune(commits=[first], now=True)
    assert report.shared_with == (deleting, last)
    graph.sweep(older_than=0)
    assert on_disk(graph), "commits that are kept need the file"
    assert people(graph, commit=deleting) == {"Ada": "fine", "Cid": "more"}

    assert graph.prune(commits=report.shared_with, now=True).shared_with == ()
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Cid": "more", "Dan": "last"}
    check(graph)


def test_one_call_prunes_the_commits_that_share_files_too(graph: Graph) -> None:
    first = write(graph, Ada="fine", Bob=SECRET, Cid="more")
    deleting = delete(graph, 'name = "Bob"')
    last = write(graph, Dan="last")

    assert graph.prune(commits=[first], now=True, shared=True, dry_run=True).shared_with == (deleting, last)
    report = graph.prune(commits=[first], now=True, shared=True)
    assert (report.also_pruned, report.shared_with) == ((deleting, last), ())
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Cid": "more", "Dan": "last"}
    check(graph)
    with pytest.raises(InvalidRequestError):
        graph.prune(keep=1, now=True, shared=True)
    with pytest.raises(InvalidRequestError):
        graph.prune(commits=[first], shared=True)


def test_commits_of_other_branches_that_share_files_are_named_and_pruned(graph: Graph) -> None:
    write(graph, Ada="fine")
    graph.branches.create("side")
    first = write(graph, Bob=SECRET, Cid="more")
    merged = delete(graph, 'name = "Bob"')
    graph.merge("main", into="side")
    own = write(graph, "side", Eve="side")

    report = graph.prune(commits=[first], now=True)
    assert {merged, own} <= set(report.shared_with)
    report = graph.prune(commits=[first], now=True, shared=True)
    assert own in report.also_pruned
    assert report.shared_with == (merged,), "the merge base of both branches"
    assert people(graph, branch="side") == {"Ada": "fine", "Cid": "more", "Eve": "side"}
    graph.merge("main", into="side")
    write(graph, Cid="even more")
    graph.merge("side")
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Cid": "even more", "Eve": "side"}
    check(graph)


def test_a_tag_on_a_commit_that_shares_files_keeps_them(graph: Graph) -> None:
    first = write(graph, Ada="fine", Bob=SECRET)
    deleting = delete(graph, 'name = "Bob"')
    graph.tags.create("t")
    report = graph.prune(commits=[first], now=True, shared=True)
    assert (report.also_pruned, report.shared_with) == ((deleting,), (deleting,))
    graph.sweep(older_than=0)
    assert people(graph, tag="t") == {"Ada": "fine"}
    graph.tags.delete("t")
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    check(graph)


def test_deleted_rows_leave_with_a_purge_and_a_prune_of_what_came_before(graph: Graph) -> None:
    write(graph, **{f"p{number}": "fine" for number in range(50)}, Bob=SECRET)
    graph.mutate('query q() { delete Person where name = "Bob" }')
    graph.optimize()
    graph.optimize(purge=True)
    number = graph.snapshot().number
    graph.optimize(purge=True)
    assert graph.snapshot().number == number, "there is nothing more to do"
    graph.cleanup(keep=1, confirm=True)
    assert on_disk(graph) == []
    assert len(people(graph)) == 50
    check(graph)


@pytest.mark.parametrize("swept", [False, True])
def test_pruning_a_commit_twice_marks_nothing_more(graph: Graph, *, swept: bool) -> None:
    write(graph, Ada="fine")
    first, second = write(graph, Bob=SECRET), write(graph, Bob="better")
    write(graph, Bob="best")
    graph.prune(commits=[first], now=True)
    if swept:
        graph.sweep(older_than=0)
    again = graph.prune(commits=[first], now=True)
    assert (again.marked, again.waiting) == (0, 0)
    assert again.branches[0].entry is None
    both = graph.prune(commits=[first, second], now=True)
    assert both.marked >= 1
    assert people(graph) == {"Ada": "fine", "Bob": "best"}
    graph.sweep(older_than=0)
    check(graph)


@pytest.mark.parametrize(
    ("hold", "let_go"),
    [
        (lambda graph, commit: graph.tags.create("t", commit=commit), lambda graph: graph.tags.delete("t")),
        (
            lambda graph, commit: graph.branches.create("b", commit=commit),
            lambda graph: graph.branches.delete("b"),
        ),
    ],
)
def test_what_somebody_holds_stays_until_it_is_let_go(
    graph: Graph, hold: Callable[[Graph, str], object], let_go: Callable[[Graph], object]
) -> None:
    write(graph, Ada="fine")
    commit = write(graph, Bob=SECRET)
    hold(graph, commit)
    write(graph, Bob="better")
    graph.prune(commits=[commit], now=True)
    graph.sweep(older_than=0)
    at = {"tag": "t"} if graph.tags.list() else {"branch": "b"}
    assert people(graph, **at) == {"Ada": "fine", "Bob": SECRET}
    check(graph)
    let_go(graph)
    graph.cleanup(keep=5, confirm=True)
    assert on_disk(graph) == []
    check(graph)


def test_a_merge_over_a_pruned_commit_brings_what_it_would_have_brought(graph: Graph) -> None:
    write(graph, Ada="fine", Bob="old")
    graph.branches.create("side")
    many = {f"p{number}": SECRET for number in range(2_000)}  # a change set in a file of its own
    commit = write(graph, "side", **many)
    write(graph, "side", **dict.fromkeys(many, "fine"))
    write(graph, Cid="main")
    graph.prune("side", commits=[commit], now=True)
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    graph.merge("side")
    assert people(graph) == {**dict.fromkeys(many, "fine"), "Ada": "fine", "Bob": "old", "Cid": "main"}
    assert graph.verify(deep=True).findings == ()


def test_a_write_whose_base_is_pruned_and_swept_runs_again(graph: Graph) -> None:
    base = write(graph, Ada="fine")
    once = iter([True])

    def overtake() -> None:
        for _ in once:
            write(graph, Bob="fine")
            graph.prune(commits=[base], now=True)
            graph.sweep(older_than=0)

    with armed(Failpoint.WRITE_TABLES_STAGED, overtake):
        write(graph, Cid="late")
    assert people(graph) == {"Ada": "fine", "Bob": "fine", "Cid": "late"}
    graph.sweep(older_than=0)  # Lance leaves a transaction file beside the version of the late write
    check(graph)


def test_without_now_named_commits_keep_their_data_for_the_window(graph: Graph) -> None:
    write(graph, Ada="fine")
    commit = write(graph, Bob=SECRET)
    write(graph, Bob="better")
    write(graph, Cid="last")
    assert graph.prune(commits=[commit]).waiting == 1
    graph.sweep(older_than=0)
    assert on_disk(graph)
    with omnigraph.open(graph.uri, options=OpenOptions(protection_s=0)) as later:
        assert later.prune(commits=[commit]).waiting == 0
        later.sweep(older_than=0)
        assert on_disk(graph) == []
    check(graph)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_a_schema_drops_hard_leaves_with_a_sweep(graph: Graph, *, is_indexed: bool) -> None:
    graph.write(
        {"Person": [{"name": "Ada", "note": "fine", "bio": SECRET}, {"name": "Bob", "note": "also"}]},
        edges={"Knows": [{"src": "Ada", "dst": "Bob", "word": SECRET}]},
    )
    if is_indexed:
        graph.optimize()
        graph.query(f'query q() {{ match {{ $p: Person  search($p.bio, "{SECRET}") }} return {{ $p.name }} }}')
    graph.schema_apply(SCHEMA.replace("  bio: String?", "").replace("word: String?", ""), allow_data_loss=True)
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Bob": "also"}
    assert graph.count("Knows") == 1
    check(graph)


def test_keys_and_messages_of_pruned_commits_leave_the_log_with_the_sweep(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    write(graph, Ada="fine")
    change = {SECRET: "fine"}
    made = graph.write({"Person": [{"name": name, "note": note} for name, note in change.items()]}, message=SECRET)
    assert made.commit is not None
    held = [
        made.commit,
        write(graph, Cid="more"),
        delete(graph, f'name = "{SECRET}"'),
    ]
    for number in range(4):
        write(graph, Dan=str(number))
    graph.optimize()
    assert {path.parent.parent.name for path in on_disk(graph)} >= {"log", "checkpoint"}

    graph.prune(commits=held, now=True)
    graph.sweep(older_than=0)

    assert on_disk(graph) == []
    check(graph)
    assert graph.commits.list()[-1].message is None
    with omnigraph.open(graph.uri) as fresh:
        assert len(fresh.commits.list()) == len(graph.commits.list())
        write(fresh, Eve="last")
    graph.sweep(older_than=0)
    check(graph)


def test_an_entry_that_a_tag_holds_keeps_its_keys_until_the_tag_is_gone(graph: Graph) -> None:
    write(graph, Ada="fine")
    commit = write(graph, **{SECRET: "fine"})
    graph.tags.create("t", commit=commit)
    deleting = delete(graph, f'name = "{SECRET}"')
    write(graph, Cid="last")
    graph.prune(commits=[commit, deleting], now=True)
    graph.sweep(older_than=0)
    assert people(graph, tag="t") == {"Ada": "fine", SECRET: "fine"}
    graph.tags.delete("t")
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    check(graph)


def test_a_write_that_began_before_an_erased_commit_runs_again(graph: Graph) -> None:
    write(graph, Ada="fine")
    once = iter([True])

    def overtake() -> None:
        for _ in once:
            commit = write(graph, Bob="fine")
            write(graph, Cid="fine")
            graph.prune(commits=[commit], now=True)
            graph.sweep(older_than=0)

    with armed(Failpoint.WRITE_TABLES_STAGED, overtake):
        write(graph, Bob="late")
    assert people(graph) == {"Ada": "fine", "Bob": "late", "Cid": "fine"}
    graph.sweep(older_than=0)
    check(graph)


def test_commits_after_pruned_ones_still_tell_what_they_did_to_an_entity(graph: Graph) -> None:
    write(graph, Ada="fine", Bob="first")
    held = [write(graph, Bob=SECRET), write(graph, Cid=SECRET)]
    updating, back = write(graph, Bob="better", Cid="better"), write(graph, Bob="first")
    deleting = graph.mutate('query q() { delete Person where name = "Cid" }').commit

    def logs() -> list[list[tuple[str, Op]]]:
        return [[(event.commit, event.op) for event in graph.log_of("Person", name)][:2] for name in ("Bob", "Cid")]

    before = logs()
    graph.prune(commits=held, now=True)
    graph.sweep(older_than=0)
    assert logs() == before == [[(back, "update"), (updating, "update")], [(deleting, "delete"), (updating, "update")]]
    assert graph.blame("Person", "Bob").properties["note"].commit == back
    check(graph)


def everything_local(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and WORD in path.read_bytes()]


def everything_on(store: ObjectStore) -> list[str]:
    return [listed.path for listed in store.list("") if WORD in store.get(listed.path)]


def look_up(graph: Graph) -> None:
    """Let indexes of words and of neighbours be made."""
    graph.query(f'query q() {{ match {{ $p: Person  search($p.note, "{SECRET}") }} return {{ $p.name }} }}')
    graph.query("query q() { match { $p: Person  $p knows{1,2} $q } return { $q.name } }")


@pytest.mark.parametrize("place", ["local", pytest.param("s3", marks=pytest.mark.s3)])
@pytest.mark.parametrize("many", [1, 3_000])
def test_no_file_holds_anything_of_a_secret_once_every_commit_that_held_it_is_pruned(
    tmp_path: Path, request: pytest.FixtureRequest, place: str, many: int
) -> None:
    options = OpenOptions()
    uri = str(tmp_path / "graph")
    found = partial(everything_local, tmp_path)
    if place == "s3":
        options = OpenOptions(s3=request.getfixturevalue("s3_server").options)
        uri = f"s3://omnigraph-tests/{request.getfixturevalue('s3_prefix')}"
        found = partial(everything_on, request.getfixturevalue("s3_store"))
    graph = omnigraph.init(uri, SCHEMA, options=options)
    graph.write({"Person": [{"name": "Ada", "note": "fine"}, {"name": "Bob", "bio": "fine"}]})
    names = [f"{SECRET}-{number}" for number in range(many)]
    secrets = [
        graph.write(
            {"Person": [{"name": name, "note": SECRET, "bio": SECRET} for name in names]},
            edges={"Knows": [{"src": "Ada", "dst": names[0], "word": SECRET}]},
            message=f"adds {SECRET}",
        ).commit
    ]
    last = graph.commits.list()[0].id
    graph.optimize()
    if graph.commits.list()[0].id != last:
        secrets.append(graph.commits.list()[0].id)
    look_up(graph)
    secrets.append(delete(graph, f'note = "{SECRET}"'))
    graph.write({"Person": [{"name": "Cid"}]})
    look_up(graph)
    graph.optimize()
    graph.write({"Person": [{"name": "Dan"}]})
    look_up(graph)
    assert found()

    report = graph.prune(commits=secrets, now=True)
    while report.shared_with:
        report = graph.prune(commits=report.shared_with, now=True)
    graph.sweep(older_than=0)

    assert found() == []
    assert people(graph) == {"Ada": "fine", "Bob": None, "Cid": None, "Dan": None}
    assert graph.verify(deep=True).findings == ()
    assert graph.sweep(older_than=0).deleted_files == 0


def test_values_of_fragments_that_are_gone_leave_the_indexes_with_a_purge(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_FRAGMENT_ROWS_MAX", 0)  # fragments stay as they were written
    monkeypatch.setattr(limits, "INDEX_SEGMENTS_MAX", 1)  # and one segment covers several
    write(graph, Ada="fine")
    graph.optimize()
    write(graph, Bob=SECRET)
    graph.optimize()
    graph.mutate('query q() { delete Person where name = "Bob" }')
    write(graph, Cid="last")
    graph.optimize(purge=True)
    number = graph.snapshot().number
    graph.optimize(purge=True)
    assert graph.snapshot().number == number, "there is nothing more to do"
    graph.cleanup(keep=1, confirm=True)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Cid": "last"}
    check(graph)
