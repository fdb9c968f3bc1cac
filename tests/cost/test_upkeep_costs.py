"""What upkeep and merges ask of the store: what is kept decides, never how long the history is or was."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.support.histories import grow_history

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import CountingStore

GET, LIST, CREATE = RequestKind.GET, RequestKind.LIST, RequestKind.PUT_IF_ABSENT
OPTIONS = OpenOptions(durability="process", auto_compact=False, protection_s=0)
HISTORIES = (20, 400)
# Not requests to an object store: only local disk has something to do there.
LOCAL_ONLY = {RequestKind.MAKE_DURABLE, RequestKind.PROVE}

Counts = Mapping[RequestKind, int]


def schema(types: int) -> str:
    return "".join(f"node T{number} {{ name: String @key  age: I64? }}\n" for number in range(types))


class Counted:
    """A graph of so long a history whose requests are counted, opened and warm."""

    def __init__(self, root: Path, *, history: int, types: int = 2, branches: int = 0) -> None:
        self.store = CountingStore(LocalStore(root, durability=Durability.PROCESS))
        self.graph: Graph = omnigraph.init(self.store, schema(types), options=OPTIONS)
        self.write(0)
        grow_history(self.graph._open(), history)
        for number in range(branches):
            self.graph.branches.create(f"b{number}")
        self.write(1)

    def write(self, age: int, *, branch: str = "main", type_name: str = "T0") -> None:
        self.graph.write({type_name: [{"name": "a", "age": age}]}, mode="merge", branch=branch)

    def of(self, act: Callable[[Graph], object]) -> Counts:
        self.store.reset()
        act(self.graph)
        return {kind: times for kind, times in self.store.reset().items() if kind not in LOCAL_ONLY}


def at_every_history(tmp_path: Path, ask: Callable[[Counted], Counts], **shape: int) -> list[Counts]:
    """What is asked for in graphs that differ in the length of their history alone."""
    return [ask(Counted(tmp_path / str(history), history=history, **shape)) for history in HISTORIES]


@pytest.mark.parametrize("now", [False, True], ids=["later", "now"])
def test_a_prune_takes_the_same_requests_at_any_history_and_again_and_again(tmp_path: Path, *, now: bool) -> None:
    def ask(made: Counted) -> list[Counts]:
        found = []
        for age in range(2, 7):
            made.write(age)
            found.append(made.of(lambda graph: graph.prune(keep=1, now=now, branch="main")))
        return found

    found = [ask(Counted(tmp_path / str(history), history=history)) for history in HISTORIES]

    # The head and the commits before it, a few ahead; who is writing, and the floor; and one entry.
    few, many = found
    again = (3, 3, 3, 3) if now else (4, 5, 5, 5)  # what the newest superseded is kept as well
    assert few == many == [{GET: gets, LIST: 2, CREATE: 1} for gets in (9, *again)]


def test_after_a_prune_the_commits_are_listed_without_reading_below_the_line(tmp_path: Path) -> None:
    def ask(made: Counted) -> Counts:
        for age in range(3):
            made.write(age)
        made.graph.prune(keep=3, now=True, branch="main")
        return made.of(lambda graph: graph.commits.list())

    few, many = at_every_history(tmp_path, ask)

    assert few == many
    assert few[GET] <= 6


def test_a_sweep_asks_by_branches_and_what_they_keep_and_not_by_history_or_types(tmp_path: Path) -> None:
    def ask(made: Counted) -> Counts:
        for name in made.graph.branches.list():
            made.write(7, branch=name)
            made.graph.prune(keep=1, now=True, branch=name)
        made.graph.sweep(older_than=0)
        found = dict(made.of(lambda graph: graph.sweep(older_than=0)))
        found.pop(RequestKind.DELETE, None)  # the note by which the store's clock is read
        return found

    for branches in (1, 3, 5):
        few, many = at_every_history(tmp_path / f"{branches}", ask, branches=branches)
        assert few == many, branches
    one, three, five = (
        ask(Counted(tmp_path / f"{branches}-again", history=20, types=types, branches=branches))
        for branches, types in ((1, 2), (3, 2), (5, 2))
    )
    assert {kind: three[kind] - one[kind] for kind in one} == {kind: five[kind] - three[kind] for kind in one}
    assert ask(Counted(tmp_path / "types", history=20, types=10, branches=1)) == one


def test_upkeep_with_nothing_to_do_takes_the_same_requests_at_any_history(tmp_path: Path) -> None:
    def ask(made: Counted) -> Counts:
        made.graph.optimize()
        return made.of(lambda graph: graph.optimize())

    few, many = at_every_history(tmp_path, ask)

    assert few.keys() == many.keys() <= {GET, LIST}
    # One listing more where the log is long enough to be folded.
    assert {kind: many[kind] - few[kind] for kind in few} in ({GET: 0, LIST: 0}, {GET: 0, LIST: 1})


def test_upkeep_of_the_same_tail_takes_the_same_requests_at_any_history(tmp_path: Path) -> None:
    def ask(made: Counted) -> Counts:
        made.graph.optimize()
        for age in range(3):
            made.write(age)
        return made.of(lambda graph: graph.optimize())

    few, many = at_every_history(tmp_path, ask)

    assert few[CREATE] == 2  # its intent, and the entry
    # One listing more where the log is long enough to be folded.
    assert {**many, LIST: few[LIST]} == few
    assert many[LIST] - few[LIST] in (0, 1)


def test_a_merge_reads_the_commits_since_the_base_in_blocks(tmp_path: Path) -> None:
    made = Counted(tmp_path, history=5)
    made.graph.branches.create("side")
    made.write(0, branch="side")
    grow_history(made.graph._open(), 300, branch="side")
    made.graph.optimize(branch="side")
    with omnigraph.open(made.store, options=OPTIONS) as graph:
        graph.snapshot()
        made.store.reset()
        assert graph.merge("side").outcome == "fast_forward"
        # Entries 257 to 301 one by one, those before in one checkpoint; some to find the head from an old hint, and
        # those that prove their predecessors; the others as below, of a graph just opened.
        assert made.store.reset()[GET] == 61


def test_the_log_of_a_branch_that_nobody_optimizes_is_folded_beside_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 16)
    made = Counted(tmp_path, history=5)
    made.graph.branches.create("side")
    with omnigraph.open(made.store, options=OpenOptions(durability="process", auto_compact=True)) as writer:
        for age in range(50):
            writer.write({"T0": [{"name": "a", "age": age}]}, mode="merge", branch="side")
    with omnigraph.open(made.store, options=OPTIONS) as graph:
        graph.snapshot()
        made.store.reset()
        assert graph.merge("side").outcome == "fast_forward"
        assert made.store.reset()[GET] < 30


def test_a_merge_takes_the_same_requests_at_any_history(tmp_path: Path) -> None:
    def ask(made: Counted) -> Counts:
        made.graph.branches.create("side")
        made.write(5, branch="side")
        made.write(5, type_name="T1")
        return made.of(lambda graph: graph.merge("side"))

    few, many = at_every_history(tmp_path, ask)

    # Both heads, and each once more before anything is published; where they parted; who is writing. Then the note of
    # what is adopted, the entry, and the end of the note.
    assert few == many == {GET: 5, LIST: 1, CREATE: 2, RequestKind.DELETE: 1}
