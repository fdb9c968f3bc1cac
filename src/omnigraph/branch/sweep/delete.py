"""Deleting what a worklist names, in batches; what fails is told and stops nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph import limits
from omnigraph.branch.sweep.files import Candidate, FileKind
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, reached
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
    parts: GraphContext, files: Sequence[Candidate], listed: Sequence[Candidate], floors: Mapping[str, int]
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
    others = [each for each in files if each.kind is not FileKind.RECORD]
    in_tables = [each for each in others if _is_in_table(each)]
    beside = [each for each in others if not _is_in_table(each)]
    for store, some in ((parts.table_files, in_tables), (parts.store, beside)):
        for batch in _batches(some):
            _delete(store, batch, done)
            reached(Failpoint.SWEEP_BATCH_DELETED)
    for owner, floor in floors.items():
        _cut_log(parts, owner, floor, (files, listed), done)
    _remove_empty_folders(parts, files, done)
    return done


def _is_in_table(file: Candidate) -> bool:
    return file.path.startswith((paths.NODES, paths.EDGES))


def _delete(store: ObjectStore, batch: Sequence[Candidate], done: Deleted) -> None:
    """Delete a batch at once; where that fails, one by one, so that each failure is told of its own file."""
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
    parts: GraphContext, owner: str, floor: int, doomed_and_listed: tuple[Sequence[Candidate], ...], done: Deleted
) -> None:
    """Cut one log; what goes wrong ends it, so that no entry is deleted before those below it."""
    doomed, there = (
        {
            paths.entry_number(each.path) or 0: each
            for each in some
            if each.kind is FileKind.RECORD and each.owner == owner
        }
        for some in doomed_and_listed
    )
    sizes = {number: each.size for number, each in there.items()}
    try:
        for number in parts.log.cut(paths.unsegment(owner), doomed, listed=sizes, floor=floor):
            done.files += [doomed[number]] if number in doomed else []
            reached(Failpoint.SWEEP_BATCH_DELETED)
    except GraphError as fault:
        done.errors.setdefault(owner, str(fault))


def _batches(files: Sequence[Candidate]) -> list[Sequence[Candidate]]:
    size = limits.SWEEP_BATCH_FILES
    return [files[start : start + size] for start in range(0, len(files), size)]


def _remove_empty_folders(parts: GraphContext, files: Sequence[Candidate], done: Deleted) -> None:
    """On local disk, take away the folders of index segments that are gone: their names are never used again."""
    if "://" in parts.table_files.uri:
        return
    folders = {each.path.rpartition("/")[0] + "/" for each in files if each.kind is FileKind.INDEX}
    for folder in sorted(folders):
        try:
            if next(iter(parts.table_files.list(folder, limit=1)), None) is None:
                parts.table_files.delete_prefix(folder)
        except GraphError as fault:
            done.errors.setdefault(folder, str(fault))
