"""Which files a version of a table consists of."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError
from omnigraph.storage.tables.addresses import name_of
from omnigraph.storage.tables.blobs import folders_beside
from omnigraph.storage.tables.detached import is_detached, is_intermediate
from omnigraph.storage.tables.handles import Handle

_LINEAR_NAMES_COUNT_DOWN_FROM = 2**64 - 1
_FIRST_VERSION = 1
# What table creation leaves and every reader of the folder may look for.
_CREATION_FILES = ("_versions/latest_version_hint.json",)


@dataclass(frozen=True, slots=True)
class Step:
    """The making of one version.

    Attributes:
        version: the version made.
        base: the version it was made from.
        uuid: the transaction's name.
        operation: what it did.
        is_intermediate: whether nobody was given the version made.
    """

    version: int
    base: int
    uuid: str
    operation: LanceOperation.BaseOperation
    is_intermediate: bool


def manifest_file(version: int) -> str:
    """The manifest of a version, under its table's folder."""
    if is_detached(version):
        return f"_versions/d{version}.manifest"
    return f"_versions/{_LINEAR_NAMES_COUNT_DOWN_FROM - version:020d}.manifest"


def index_folder(segment: str) -> str:
    """The folder of an index segment, under its table's folder; everything in it belongs to the segment."""
    return f"_indices/{segment}/"


def fragment_files(fragments: Iterable[FragmentMetadata]) -> set[str]:
    """The data files and deletion vectors of fragments, under their table's folder."""
    fragments = list(fragments)
    found = deletion_files(fragments)
    for fragment in fragments:
        found |= {f"data/{name_of(file)}" for file in fragment.files}
        found |= {f"data/{name_of(overlay.data_file)}" for overlay in fragment.overlays}
    return found


def deletion_files(fragments: Iterable[FragmentMetadata]) -> set[str]:
    """The deletion vectors of fragments, under their table's folder."""
    return {fragment.deletion_file.path(fragment.id) for fragment in fragments if fragment.deletion_file is not None}


def in_table(table: str, files: Iterable[str]) -> tuple[str, ...]:
    """Paths under a table's folder as paths under the graph's root, in order."""
    return tuple(sorted(f"{table}/{file}" for file in files))


def version_files(handle: Handle) -> frozenset[str]:
    """Every file a version refers to, as paths under the graph's root; folders end with `/` and stand for all in them.

    The files of the table's creation are among them: without them the folder is no table to Lance.
    """
    found = fragment_files(handle.fragments())
    if handle.has_blobs:
        found |= folders_beside(found)
    found |= {manifest_file(handle.version), manifest_file(_FIRST_VERSION), *_CREATION_FILES}
    for index in handle.dataset.describe_indices():
        found |= {index_folder(segment.uuid) for segment in index.segments}
    return frozenset(in_table(handle.table, found))


def step_to(handle: Handle, version: int) -> Step:
    """How a version was made."""
    transaction = handle.dataset.read_transaction(version)
    if transaction is None:
        raise InternalError(f"table {handle.table}: version {version} does not say what it was made from")
    return Step(
        version,
        transaction.read_version,
        transaction.uuid,
        transaction.operation,
        is_intermediate(transaction.transaction_properties),
    )


def plan_steps(base: Handle, staged: Handle) -> Iterator[Step]:
    """How `staged` came from `base`, the last step first.

    Args:
        staged: where to start; every version names the one it was made from.

    Raises:
        InternalError: `staged` was not made from `base`.
    """
    version = staged.version
    while version != base.version:
        if not is_detached(version):
            raise InternalError(
                f"table {staged.table}: version {staged.version} was not made from version {base.version}"
            )
        step = step_to(staged, version)
        yield step
        version = step.base


def steps_of(staged: Handle) -> list[Step]:
    """The steps of the one call that made a version, the last first."""
    steps = [step_to(staged, staged.version)]
    while is_detached(steps[-1].base):
        before = step_to(staged, steps[-1].base)
        if not before.is_intermediate:
            break
        steps.append(before)
    return steps
