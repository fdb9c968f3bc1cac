"""Delete the files of a worklist in batches, and erase entities from pruned log entries.

A failure is reported and stops nothing else. The entry of a pruned commit stays in the log, because later entries were
built on it, with counts, parents and table versions; ids, the message and the footprint go. To conflict checks an
erased entry has touched its types as a whole; readers of its changes get a gap.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph import limits
from omnigraph.branch.merge.ancestry import MERGE_NOTE
from omnigraph.branch.sweep.files import Candidate, FileKind
from omnigraph.branch.sweep.roots import Reached
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.change import NO_CHANGES, Changes, TypeChange
from omnigraph.model.commit import Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.transaction.graph_context import GraphContext


@dataclass(slots=True)
class Deleted:
    """What was deleted, and what could not be.

    Attributes:
        files: gone now.
        errors: by what is kept or goes as one, or by path, the first thing that went wrong.
    """

    files: list[Candidate] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def delete_all(
    context: GraphContext, files: Sequence[Candidate], listed: Sequence[Candidate], floors: Mapping[str, int]
) -> Deleted:
    """Delete files, a batch in one request where the store can. Log entries go last, one after the other.

    Args:
        files (Sequence[Candidate]): which; nothing may reach them.
        listed (Sequence[Candidate]): all there are.
        floors (Mapping[str, int]): the first entry that counts, by the folder of a log that is cut.

    Returns:
        Deleted: what came of it. A file that was gone already counts as deleted.
    """
    done = Deleted()
    others = [file for file in files if file.kind is not FileKind.RECORD]
    in_tables = [file for file in others if _is_in_table(file)]
    beside = [file for file in others if not _is_in_table(file)]
    for store, some in ((context.table_files, in_tables), (context.store, beside)):
        for batch in _batches(some):
            _delete(store, batch, done)
            reached(Failpoint.SWEEP_BATCH_DELETED)
    for owner, floor in floors.items():
        _cut_log(context, owner, floor, (files, listed), done)
    _remove_empty_folders(context, files, done)
    return done


def _is_in_table(file: Candidate) -> bool:
    return file.path.startswith((paths.NODES, paths.EDGES))


def _delete(store: ObjectStore, batch: Sequence[Candidate], done: Deleted) -> None:
    """Delete a batch at once; where that fails, one by one, so that each failure is reported of its own file."""
    try:
        store.delete_many([file.path for file in batch])
    except GraphError:
        for file in batch:
            try:
                store.delete(file.path)
            except GraphError as fault:
                done.errors.setdefault(file.owner or file.path, str(fault))
            else:
                done.files.append(file)
    else:
        done.files += batch


def _cut_log(
    context: GraphContext, owner: str, floor: int, doomed_and_listed: tuple[Sequence[Candidate], ...], done: Deleted
) -> None:
    """Cut one log; what goes wrong ends it, so that no entry is deleted before those below it."""
    doomed, there = (
        {
            paths.entry_number(file.path) or 0: file
            for file in some
            if file.kind is FileKind.RECORD and file.owner == owner
        }
        for some in doomed_and_listed
    )
    sizes = {number: file.size for number, file in there.items()}
    try:
        for number in context.log.cut(paths.unsegment(owner), doomed, listed=sizes, floor=floor):
            done.files += [doomed[number]] if number in doomed else []
            reached(Failpoint.SWEEP_BATCH_DELETED)
    except GraphError as fault:
        done.errors.setdefault(owner, str(fault))


def _batches(files: Sequence[Candidate]) -> list[Sequence[Candidate]]:
    size = limits.SWEEP_BATCH_FILES
    return [files[start : start + size] for start in range(0, len(files), size)]


def _remove_empty_folders(context: GraphContext, files: Sequence[Candidate], done: Deleted) -> None:
    """On local disk, take away the folders of index segments that are gone: their names are never used again."""
    if "://" in context.table_files.uri:
        return
    folders = {file.path.rpartition("/")[0] + "/" for file in files if file.kind is FileKind.INDEX}
    for folder in sorted(folders):
        try:
            if next(iter(context.table_files.list(folder, limit=1)), None) is None:
                context.table_files.delete_prefix(folder)
        except GraphError as fault:
            done.errors.setdefault(folder, str(fault))


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


def erase(context: GraphContext, entries: list[Record]) -> dict[str, str]:
    """Take what they say of entities out of entries; returns what went wrong, by branch."""
    by_branch: defaultdict[str, list[Record]] = defaultdict(list)
    for entry in entries:
        by_branch[entry.branch].append(without_entities(entry))
    errors = {}
    for branch, erased in by_branch.items():
        try:
            context.log.replace_erased(branch, erased)
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
