"""Deleting what a worklist names, in batches; what fails is told and stops nothing else."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from omnigraph import limits
from omnigraph.branch.sweep.files import Candidate, FileKind
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts

_DELETE_THREADS = 8


@dataclass(slots=True)
class Deleted:
    """What was deleted, and what could not be.

    Attributes:
        files: gone now.
        errors: by what is kept or goes as one, or by path, the first thing that went wrong.
    """

    files: list[Candidate] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def delete_all(parts: Parts, files: Sequence[Candidate]) -> Deleted:
    """Delete files. Entries of logs go last and oldest first, everything else in any order.

    Args:
        parts (Parts): of the graph.
        files (Sequence[Candidate]): which; nothing may reach them.

    Returns:
        Deleted: what came of it. A file that was gone already counts as deleted.
    """
    done = Deleted()
    records = sorted((each for each in files if each.kind is FileKind.RECORD), key=lambda each: each.path, reverse=True)
    others = [each for each in files if each.kind is not FileKind.RECORD]
    with ThreadPoolExecutor(_DELETE_THREADS, thread_name_prefix="sweep") as pool:
        for some in (*_batches(others), *_batches(records)):
            for each, fault in zip(some, pool.map(lambda each: _deleted(parts, each), some), strict=True):
                if fault is None:
                    done.files.append(each)
                else:
                    done.errors.setdefault(each.owner or each.path, fault)
            reached(Failpoint.SWEEP_BATCH_DELETED)
    _remove_empty_folders(parts, files, done)
    return done


def _batches(files: Sequence[Candidate]) -> list[Sequence[Candidate]]:
    size = limits.SWEEP_BATCH_FILES
    return [files[start : start + size] for start in range(0, len(files), size)]


def _deleted(parts: Parts, each: Candidate) -> str | None:
    store = parts.table_files if each.path.startswith((paths.NODES, paths.EDGES)) else parts.store
    try:
        store.delete(each.path)
    except GraphError as fault:
        return str(fault)
    return None


def _remove_empty_folders(parts: Parts, files: Sequence[Candidate], done: Deleted) -> None:
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
