"""Erasing entries of pruned commits: what a commit pruned by name says of entities leaves the log with its data.

Its entry stays in the log, because later entries were built on it. Counts, parents and table versions stay in it; ids,
the message and the footprint go. To those who judge conflicts an erased entry has touched the types it touched as a
whole, and to those who ask for its changes their file was swept.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from omnigraph.branch.merge.ancestry import MERGE_NOTE
from omnigraph.branch.sweep.roots import Reached
from omnigraph.errors import GraphError
from omnigraph.model.change import NO_CHANGES, Changes, TypeChange
from omnigraph.model.commit import Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext

_RESOLVED = "resolved"
"""In the note of a merge: the ids of the conflicts that it resolved."""


def to_erase(found: Reached, needed: Mapping[str, int]) -> list[Record]:
    """Entries of pruned commits that nothing needs whole any more.

    Args:
        found: everything that is reached.
        needed: per branch, the first entry that an interrupted write must still find to be judged; it may then be
            finished instead of being done again.
    """
    return [
        entry
        for (branch, number), entry in found.gone.items()
        if not entry.erased and (branch, number) not in found.held and number <= needed.get(branch, number)
    ]


def erase(parts: GraphContext, entries: list[Record]) -> dict[str, str]:
    """Take what they say of entities out of entries; returns what went wrong, by branch."""
    by_branch: defaultdict[str, list[Record]] = defaultdict(list)
    for entry in entries:
        by_branch[entry.branch].append(without_entities(entry))
    errors = {}
    for branch, erased in by_branch.items():
        try:
            parts.log.replace_erased(branch, erased)
        except GraphError as fault:
            errors[branch] = str(fault)
    return errors


def without_entities(entry: Record) -> Record:
    """An entry that names no entity and says nothing in its writer's words."""
    counts = {
        key: TypeChange(change.inserted, change.updated, change.deleted) for key, change in entry.changes.types.items()
    }
    changes = Changes(counts, entry.changes.file or paths.change_file(entry.commit)) if counts else NO_CHANGES
    notes = dict(entry.notes)
    merge = notes.get(MERGE_NOTE)
    if isinstance(merge, dict):
        notes[MERGE_NOTE] = {name: value for name, value in merge.items() if name != _RESOLVED}
    return replace(entry, changes=changes, footprint=_whole(entry), message=None, notes=notes, erased=True)


def _whole(entry: Record) -> Footprint:
    """A footprint that clashes wherever the one of an entry may have."""
    if entry.footprint.file is not None:
        return Footprint({key: TypeFootprint(writes_whole=True) for key in entry.tables})
    return Footprint(
        {
            key: TypeFootprint(writes_whole=part.changes_content, changes_layout_only=part.changes_layout_only)
            for key, part in entry.footprint.types.items()
        }
    )
