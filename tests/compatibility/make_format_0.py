"""Made `format-0`, once, and is kept to show how: a graph as the first trials wrote it. Do not run it again.

python tests/compatibility/make_format_0.py <folder>
"""

import json
import sys
from pathlib import Path

from tests.support.operations import COLUMNS, COMPANY, KNOWS, PERSON, table_of

from omnigraph.ids import UlidSource
from omnigraph.model.commit import Pin
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.storage.tables.tables import RowsToStage, Tables
from omnigraph.testing.clock import ManualClock

_START_MS = 1_700_000_000_000


class Trial:
    """Writes entries in the shape of that time."""

    def __init__(self, root: Path) -> None:
        self._store = LocalStore(root)
        self._tables = Tables(str(root))
        self._clock = ManualClock(start_us=_START_MS * 1_000)
        self._ids = UlidSource(self._clock)
        self._pins: dict[str, dict[str, Pin]] = {}
        self._logs: dict[str, list[str]] = {}

    def stamp(self) -> None:
        """The stamp had no id of the graph yet."""
        self._store.put(paths.STAMP, json.dumps({"format": 0}).encode())

    def begin(self) -> None:
        """The first entry, with empty tables."""
        folders = {PERSON: "nodes/people", COMPANY: "nodes/companies", KNOWS: "edges/knows"}
        self._pins["main"] = {key: self._tables.create(folder, COLUMNS) for key, folder in folders.items()}
        self._entry("main", "init", actor="founder")

    def change(self, branch: str, type_key: str, rows: RowsToStage, *, kind: str = "mutation") -> None:
        """One commit to one type."""
        pins = self._pins[branch]
        pins[type_key] = self._tables.stage_rows(pins[type_key], rows).pin
        self._entry(branch, kind, actor="trial")

    def fork(self, branch: str) -> None:
        """A branch from main."""
        self._pins[branch] = dict(self._pins["main"])
        self._entry(branch, "fork", parent=self._logs["main"][-1])

    def _entry(self, branch: str, kind: str, *, actor: str | None = None, parent: str | None = None) -> None:
        log = self._logs.setdefault(branch, [])
        self._clock.advance(1.5)
        commit = self._ids.new()
        if parent is None and log:
            # A branch's first entry is no commit, so what follows it has the same parent.
            parent = log[-1] if branch == "main" or len(log) > 1 else self._logs["main"][-1]
        document = {
            "format": 0,
            "commit": commit,
            "branch": branch,
            "number": len(log) + 1,
            "kind": kind,
            "parent": parent,
            "actor": actor,
            "created_at_ms": self._clock.now_us() // 1_000,
            "schema": "first",
            "tables": {
                key: {"path": pin.table, "version": str(pin.version)} for key, pin in self._pins[branch].items()
            },
        }
        log.append(commit)
        self._store.put_if_absent(paths.entry(branch, len(log)), json.dumps(document, indent=1).encode())


def main(root: Path) -> None:
    """Write the graph."""
    trial = Trial(root)
    trial.stamp()
    trial.begin()
    trial.change("main", PERSON, RowsToStage(appends=table_of({"ada": 36, "alan": 41, "emmy": None})))
    trial.change("main", COMPANY, RowsToStage(appends=table_of({"acme": 1})), kind="load")
    trial.fork("side")
    trial.change("side", PERSON, RowsToStage(appends=table_of({"grace": 85})))
    trial.change("main", PERSON, RowsToStage(upserts=table_of({"ada": 37}), deleted_ids=("alan",)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
