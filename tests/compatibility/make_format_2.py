"""Made `format-2` and what it is expected to hold, once, and is kept to show how. Do not run it again.

    python tests/compatibility/make_format_2.py <folder>

The folder gets the graph; `<folder>.expected.json` gets every row of every commit.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import operations as op
from tests.support.interrupted_writes import interrupt, move_to_another_host, set_aside
from tests.support.operations import COMPANY, KNOWS, PERSON

from omnigraph import limits
from omnigraph.branch import branches, tags
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import entries
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write


def main(root: Path) -> None:
    """Write the graph, one commit of every kind."""
    clock = ManualClock()
    parts = op.new_graph(LocalStore(root), clock=clock, actor="founder")

    def commit(operation: Operation, *, branch: str = MAIN, **options: Any) -> None:  # noqa: ANN401  (values of any kind)
        clock.advance(1.5)
        write(parts, branch, operation, WriteOptions(actor="ada", **options))

    commit(op.insert(PERSON, {"ada": 36, "alan": 41, "emmy": None}), message="the first")
    commit(op.upsert_many({PERSON: {"ada": 37, "grace": 85}, COMPANY: {"acme": 1}}))
    commit(op.update(PERSON, ["alan"], 42))
    commit(op.delete(PERSON, ["alan"]))
    commit(op.append(KNOWS, {"k1": 1, "k2": 2}), idempotency_key="once")
    commit(op.build_index(parts, PERSON))
    commit(op.compact(parts, PERSON))
    tags.create(parts, "named", parts.log.live_head(MAIN), actor="ada")
    tags.create(parts, "given back", parts.log.live_head(MAIN))
    tags.delete(parts, "given back")
    branches.create(parts, "größe/side", actor="ada")
    commit(op.overwrite(PERSON, {"only": 1}), branch="größe/side")
    branches.create(parts, "again")
    branches.delete(parts, "again")
    branches.create(parts, "again", source="größe/side")
    with changed(INLINE_CHANGE_IDS_MAX=1, INLINE_FOOTPRINT_TOKENS_MAX=1):
        commit(op.upsert(COMPANY, {"acme": 2, "initech": 3}))
    with changed(WHOLE_MAP_TYPES_MAX=2):
        commit(op.insert(COMPANY, {"whole": 4}))
        commit(op.insert(COMPANY, {"delta": 5}))
    commit(op.add_column(parts, COMPANY, "w"))
    commit(op.rename_column(parts, COMPANY, "v", "value"))
    commit(op.drop_column(parts, COMPANY, "w"))
    commit(op.add_table(parts, "node:City", {"paris": 1}))
    commit(op.remove_table("node:City"))
    interrupt(parts, op.insert(PERSON, {"finished": 1}))
    heal(parts)
    undone = interrupt(parts, op.update(PERSON, ["ada"], 0))
    with set_aside(parts, undone):
        commit(op.upsert(PERSON, {"ada": 38}))
    heal(parts)
    commit(op.noted(op.insert(PERSON, {"noted": 1})))
    with changed(CHECKPOINT_ENTRIES=8):
        parts.log.fold(MAIN)
    with changed(HINT_EVERY_ENTRIES=1):
        commit(op.insert(PERSON, {"hinted": 1}))
    prune(parts, MAIN, Policy(numbers=(3,)))
    # Left for the reader of this graph: one write staged whole, one that had only begun.
    begun = interrupt(parts, op.insert(PERSON, {"begun": 1}), at=Failpoint.WRITE_INTENT_PUT)
    with set_aside(parts, begun):
        staged = interrupt(parts, op.insert(KNOWS, {"staged": 1}))
    for intent in (begun, staged):
        move_to_another_host(parts, intent)
    expected = told(open_root(str(root), read_only=True)) | {"begun": begun, "staged": staged}
    text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    root.with_name(f"{root.name}.expected.json").write_text(text, encoding="utf-8")


def told(parts: GraphContext) -> dict[str, Any]:
    """Everything there is to read: per branch every entry with all rows, and the tags."""
    return {
        "branches": {
            name: [
                {
                    "number": entry.number,
                    "commit": entry.commit,
                    "kind": entry.kind.value,
                    "parent": entry.parent,
                    "actor": entry.actor,
                    "message": entry.message,
                    "key": entry.idempotency_key,
                    "created_at": entry.created_at_us,
                    "schema": entry.schema,
                    "aborted": list(entry.aborted),
                    "recovery": entry.recovery and entry.recovery.kind.value,
                    "changes": {
                        key: [change.inserted, change.updated, change.deleted]
                        for key, change in entry.changes.types.items()
                    },
                    "rows": {
                        key: parts.snapshot(entry).scan(key).sort_by("id").to_pylist() for key in sorted(entry.tables)
                    },
                }
                for entry in entries(parts, name)
            ]
            for name in parts.log.branch_names()
        },
        "tags": {name: tags.read(parts, name).commit for name in tags.names(parts)},
    }


@contextmanager
def changed(**bounds: int) -> Iterator[None]:
    """Other bounds for a while, so that a small graph shows what only large ones have."""
    before = {name: getattr(limits, name) for name in bounds}
    for name, value in bounds.items():
        setattr(limits, name, value)
    yield
    for name, value in before.items():
        setattr(limits, name, value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
