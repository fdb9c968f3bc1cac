"""Judging a lost race: what others wrote since our base, against what we read and wrote.

Pure: it looks at records, never at tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.conflict import (
    BasePruned,
    Conflict,
    DeclaredDead,
    ExpectedVersionMismatch,
    KeyConflict,
    ReadSetChanged,
)
from omnigraph.model.footprint import Footprint, has_conflict


@dataclass(frozen=True, slots=True)
class Clear:
    """Nothing they wrote touches what we read or wrote: rebase."""


@dataclass(frozen=True, slots=True)
class Clashing:
    """They touched it: run the operation again where that means the same thing, refuse where it does not."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """No second run can help: the schema changed, the branch is gone, or recovery took us for dead."""

    conflicts: tuple[Conflict, ...]


Judgement = Clear | Clashing | Broken


def judge(ours: Footprint, base: Record, newer: Sequence[Record], *, intent: str | None = None) -> Judgement:
    """What to do about entries `newer`, which others put after our `base`."""
    for entry in newer:
        if intent is not None and intent in entry.aborted:
            return Broken((DeclaredDead(intent, entry.commit),))
        if entry.kind in (CommitKind.DELETE, CommitKind.FORK):
            return Broken((ReadSetChanged("branch", base.commit, entry.commit),))
        if entry.schema != base.schema:
            return Broken((ReadSetChanged("schema", base.schema, entry.schema),))
    found: list[Conflict] = []
    head = newer[-1] if newer else base
    for type_key, part in sorted(ours.types.items()):
        for entry in newer:
            theirs = entry.footprint.of(type_key)
            # A layout follows writes of rows; on another layout, or another content, it has to be planned anew.
            layouts_meet = part.changes_layout_only and (theirs.changes_layout_only or theirs.writes_whole)
            if layouts_meet or has_conflict(part, theirs):
                found.append(ReadSetChanged(type_key, _version(base, type_key), _version(head, type_key)))
                break
    return Clashing(tuple(found)) if found else Clear()


def has_barrier(newer: Sequence[Record]) -> bool:
    """True if a sweep may have deleted what was staged before these entries, unless an intent protects it."""
    return any(entry.kind is CommitKind.BARRIER for entry in newer)


def mismatches(expected: Mapping[str, int], head: Record) -> tuple[ExpectedVersionMismatch, ...]:
    """The caller's expected table versions that do not hold at `head`; an unknown table is at version 0."""
    wrong = []
    for type_key, version in sorted(expected.items()):
        pin = head.tables.get(type_key)
        actual = pin.version if pin is not None else 0
        if actual != version:
            wrong.append(ExpectedVersionMismatch(type_key, version, actual))
    return tuple(wrong)


def message_for(conflict: Conflict) -> str:
    """A conflict in a sentence: what was expected, what is there, what to do."""
    match conflict:
        case ExpectedVersionMismatch(table_key, expected, actual):
            return f"{table_key} is at version {actual}, not at {expected} as the write expects; read again and retry"
        case ReadSetChanged("branch", _, actual):
            return (
                f"the branch was deleted or made anew while the write ran (entry {actual}); start again from its head"
            )
        case ReadSetChanged("schema", expected, actual):
            return f"the schema changed from {expected} to {actual} while the write ran; prepare the write anew"
        case ReadSetChanged(member, expected, actual):
            return (
                f"{member} moved from version {expected} to {actual} under what the write had read; read again, retry"
            )
        case KeyConflict():
            return str(conflict)
        case DeclaredDead(intent, by_commit):
            by = f", commit {by_commit}" if by_commit else ""
            return f"recovery took this write for dead and undid it (intent {intent}{by}); run it again"
        case BasePruned(branch, base_number, floor):
            return (
                f"entry {base_number} of branch '{branch}', from which the write started, was pruned while it ran "
                f"(the oldest that is kept is {floor}); run it again"
            )


def _version(record: Record, type_key: str) -> str:
    pin = record.tables.get(type_key)
    return str(pin.version if pin is not None else 0)
