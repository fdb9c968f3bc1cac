"""Every kind of write there is, each as one act on one prepared graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.support import operations as op
from tests.support.operations import COMPANY, KNOWS, PERSON

from omnigraph.branch import branches, tags
from omnigraph.clock import Clock
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_store import ObjectStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

SETTINGS = Settings(durability="process")
NOTED = replace(SETTINGS, intent_rows_min=0)
"""Every write leaves an intent, however small."""

SIDE = "side/line"
_LARGE = 260  # more ids than fit into a record


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of write.

    Attributes:
        name: for test ids.
        act: does it once, on the prepared graph.
        leaves_intents: whether it can be done under an intent.
    """

    name: str
    act: Callable[[GraphContext], object]
    leaves_intents: bool = True


def prepare(store: ObjectStore) -> None:
    """A small graph on which every kind of write has something to do.

    Args:
        store (ObjectStore): its root.
    """
    parts = op.new_graph(store, settings=SETTINGS, clock=ManualClock())
    write(parts, MAIN, op.insert(PERSON, {"a": 1, "b": 2, "c": None}))
    write(parts, MAIN, op.upsert_many({PERSON: {"d": 4, "a": 10}, COMPANY: {"x": 1, "y": 2}}))
    write(parts, MAIN, op.insert(KNOWS, {"k": 1}))
    branches.create(parts, SIDE)
    write(parts, SIDE, op.insert(PERSON, {"e": 5}))
    branches.create(parts, "ended")
    branches.delete(parts, "ended")
    tags.create(parts, "named", parts.log.live_head(MAIN))


def opened(store: ObjectStore, *, settings: Settings = SETTINGS, clock: Clock | None = None) -> GraphContext:
    """A graph opened for writing, on a clock that loses no time by waiting.

    Args:
        store (ObjectStore): its root.
        settings (Settings): how.
        clock (Clock | None): another clock.

    Returns:
        GraphContext: of the graph, healed.
    """
    return open_root(store, settings=settings, clock=clock or ManualClock())


def next_write(parts: GraphContext) -> None:
    """An ordinary write that touches nothing any kind here is about; it must work at once."""
    receipt = write(parts, MAIN, op.insert(KNOWS, {"next": 1}))
    assert receipt.entry is not None
    assert receipt.attempts == 1


def _written(
    name: str,
    make: Callable[[GraphContext], Operation] | Operation,
    *,
    branch: str = MAIN,
    options: WriteOptions | None = None,
) -> Kind:
    def act(parts: GraphContext) -> object:
        return write(parts, branch, make if isinstance(make, Operation) else make(parts), options)

    return Kind(name, act)


KINDS = (
    _written("insert", op.insert(PERSON, {"n": 1, "o": 2})),
    _written("append", op.append(PERSON, {"n": 1})),
    _written("upsert", op.upsert(PERSON, {"a": 7, "n": 1})),
    _written("update", op.update(PERSON, ["a", "b"], 8)),
    _written("update_where", op.update_where(PERSON, "v > 3", 0)),
    _written("delete", op.delete(PERSON, ["a"])),
    _written("delete_where", op.delete_where(PERSON, "v IS NULL")),
    _written("delete_everything", op.delete(PERSON, ["a", "b", "c", "d"])),
    _written("overwrite", op.overwrite(PERSON, {"a": 1, "z": 26})),
    _written("overwrite_with_nothing", op.overwrite(PERSON, {})),
    _written("load_of_two_types", op.upsert_many({PERSON: {"a": 0, "n": 1}, COMPANY: {"z": 3}})),
    _written("load_of_nothing", op.upsert_many({PERSON: {}})),
    _written("large_insert", op.insert(PERSON, {f"n{each}": each for each in range(_LARGE)})),
    _written("two_statements", op.both(op.insert(PERSON, {"n": 1}), op.delete(COMPANY, ["x"]))),
    _written("write_on_a_branch", op.upsert(PERSON, {"e": 6, "n": 1}), branch=SIDE),
    _written("write_with_a_key", op.append(PERSON, {"n": 1}), options=WriteOptions(idempotency_key="once")),
    _written("add_table", lambda parts: op.add_table(parts, "node:City")),
    _written("add_table_with_rows", lambda parts: op.add_table(parts, "node:City", {"p": 1, "q": 2})),
    _written("remove_table", op.remove_table(COMPANY)),
    _written("replace_table", lambda parts: op.both(op.remove_table(COMPANY), op.add_table(parts, COMPANY, {"p": 1}))),
    _written("add_column", lambda parts: op.add_column(parts, PERSON, "w")),
    _written("rename_column", lambda parts: op.rename_column(parts, PERSON, "v", "w")),
    _written("drop_column", lambda parts: op.drop_column(parts, PERSON, "v")),
    _written("index", lambda parts: op.build_index(parts, PERSON)),
    _written("compaction", lambda parts: op.compact(parts, PERSON)),
    Kind("branch_create", lambda parts: branches.create(parts, "new"), leaves_intents=False),
    Kind("branch_create_again", lambda parts: branches.create(parts, "ended", source=SIDE), leaves_intents=False),
    Kind("branch_delete", lambda parts: branches.delete(parts, SIDE), leaves_intents=False),
    Kind("tag_create", lambda parts: tags.create(parts, "new", parts.log.live_head(SIDE)), leaves_intents=False),
    Kind("tag_delete", lambda parts: tags.delete(parts, "named"), leaves_intents=False),
)
