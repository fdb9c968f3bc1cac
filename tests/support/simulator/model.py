"""Independent model of a graph under simulation: what every log entry does, and what the graph must hold in the end.

It shares no code with the product. It is told of every log entry that a host tries to put, and of every promise that a
host was given; in the end it reads the log as plain JSON and the tables with Lance alone.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance

TYPE_KEY = "node:Person"
_U64_MAX = 2**64 - 1

Rows = dict[str, int | None]


@dataclass
class Request:
    """One write that a host asked for, and what it was told.

    Attributes:
        rows: what the write sets, by id.
        branch: where.
        outcome: "unknown" until the host was told; "done" or "refused" afterwards.
        commit: the commit it was told.
        number: that of the commit's entry.
        root: how often the root had been replaced when its entry was put last.
        at_s: when it was acknowledged.
    """

    rows: Rows
    branch: str
    outcome: str = "unknown"
    commit: str = ""
    number: int = 0
    root: int = -1
    at_s: float = 0.0


@dataclass
class Model:
    """Everything that was asked for, put and promised."""

    requests: list[Request] = field(default_factory=list)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_commit: dict[str, Request] = field(default_factory=dict)
    by_intent: dict[str, Request] = field(default_factory=dict)
    tags: dict[str, tuple[str, int, str, int]] = field(default_factory=dict)
    tags_deleted: set[str] = field(default_factory=set)

    def copy(self) -> "Model":
        """Return a model that goes on from here."""
        return Model(
            list(self.requests), dict(self.entries), dict(self.by_commit), dict(self.by_intent), dict(self.tags)
        )

    def note_entry(self, body: bytes, request: Request | None) -> None:
        """Remember a log entry that a host tries to put while it works on a request."""
        entry = json.loads(body)
        if "commit" not in entry:
            return  # the mark that entries were cut away there
        self.entries[entry["commit"]] = entry
        owner = request
        if entry["kind"] == "recover":
            owner = self.by_intent.get(entry.get("intent", ""))  # what it finishes; an undo does nothing
        elif entry["kind"] in {"barrier", "prune", "fork", "delete"}:
            owner = None
        if owner is not None:
            self.by_commit[entry["commit"]] = owner

    def rows_of(self, commit: str | None) -> Rows:
        """Return what the graph holds after a commit, by the entries that led to it."""
        line: list[dict[str, Any]] = []
        while commit is not None:
            entry = self.entries[commit]
            line.append(entry)
            commit = entry.get("parent")
        rows: Rows = {}
        for entry in reversed(line):
            if entry.get("merged_parent"):
                rows = self.rows_of(entry["merged_parent"]) | rows
            request = self.by_commit.get(entry["commit"])
            rows |= {} if request is None else request.rows
        return rows


class Ledger:
    """A graph's folder, read as plain files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tables: dict[tuple[str, str], Rows] = {}

    def branches(self) -> list[str]:
        """Return the names of all logs."""
        return sorted(folder.name for folder in (self._root / "__manifest/log").iterdir() if "." not in folder.name)

    def entry(self, branch: str, number: int) -> dict[str, Any] | None:
        """Return one entry, or None."""
        file = self._root / f"__manifest/log/{branch}/{_U64_MAX - number:020d}.json"
        found = json.loads(file.read_bytes()) if file.exists() else {}
        return found if "commit" in found else None

    def chain(self, branch: str, number: int, commit: str) -> list[dict[str, Any]]:
        """Return the entries from a head back to the first that is there, newest first."""
        found = []
        entry = self.entry(branch, number)
        while entry is not None and entry["commit"] == commit:
            found.append(entry)
            previous = entry.get("previous")
            if previous is None:
                break
            commit = previous["commit"]
            entry = self.entry(branch, int(previous["number"]))
        return found

    def rows_of(self, entry: dict[str, Any]) -> Rows:
        """Return the rows of the one type at an entry."""
        pin = entry["tables"][TYPE_KEY]
        known = self._tables.get((pin["table"], pin["version"]))
        if known is None:
            found = lance.dataset(str(self._root / pin["table"]), version=int(pin["version"])).to_table(["id", "v"])
            known = {row["id"]: row["v"] for row in found.to_pylist()}
            assert len(known) == found.num_rows, f"a row twice at entry {entry['number']} of {entry['branch']}"
            self._tables[pin["table"], pin["version"]] = known
        return known


def check_log(model: Model, ledger: Ledger, head: dict[str, Any], *, root: int, backup_s: float) -> None:
    """Hold the log of one branch, from the entry at its head on, against the model.

    Raises:
        AssertionError: an acknowledged commit is missing or twice, a refused one is there, or rows are not as they were
            written.
    """
    branch = head["branch"]
    chain = ledger.chain(branch, head["number"], head["commit"])
    life = head.get("born") or (head["number"] if head["kind"] == "fork" else 1)
    floor = max(int(head.get("pruned", {}).get("floor", 1)), int(life))
    there = {entry["commit"] for entry in chain}
    served = [id(model.by_commit[commit]) for commit in there if commit in model.by_commit]
    assert len(served) == len(set(served)), f"a write is twice in the log of {branch}"
    assert chain[-1]["number"] <= floor, f"the log of {branch} ends at {chain[-1]['number']}, above its floor {floor}"
    for request in model.requests:
        if request.branch != branch:
            continue
        if request.outcome == "refused":
            assert id(request) not in served, f"refused {request} is in the log of {branch}"
        is_of_this_root = request.root == root or request.at_s < backup_s
        if request.outcome == "done" and request.number >= floor and is_of_this_root:
            assert request.commit in there, f"acknowledged {request} is not in the log of {branch}"
    for entry in chain:
        if entry["number"] >= floor and "tables" in entry:
            expected, found = model.rows_of(entry["commit"]), ledger.rows_of(entry)
            assert found == expected, f"entry {entry['number']} of {branch} holds {found}, not {expected}"


def check_endings(ledger: Ledger, heads: list[dict[str, Any]]) -> None:
    """See that no write that was declared dead, or is audited as undone, is in a log all the same.

    Raises:
        AssertionError: one is.
    """
    for head in heads:
        chain = ledger.chain(head["branch"], head["number"], head["commit"])
        carried = {entry["intent"] for entry in chain if entry.get("intent")}
        audits = [entry["recovery"] for entry in chain if entry.get("recovery")]
        undone = {audit["operation_id"] for audit in audits if audit["recovery_kind"] == "RolledBack"}
        dead = undone.union(*(entry.get("aborted", ()) for entry in chain))
        assert not dead & carried, f"undone, and yet in the log of {head['branch']}: {sorted(dead & carried)}"


def check_tags(model: Model, ledger: Ledger, *, root: int) -> None:
    """See that everything tagged is there, whatever was pruned or deleted.

    Raises:
        AssertionError: it is not.
    """
    for name, (branch, number, commit, put_in) in model.tags.items():
        if put_in == root:
            entry = ledger.entry(branch, number)
            assert entry is not None and entry["commit"] == commit, f"{name}: entry {number} of {branch} is gone"
            assert ledger.rows_of(entry) == model.rows_of(commit), f"{name}: entry {number} of {branch} is another"
