"""Looking at versions as they are on the store now: past every cache, file by file.

What other handles of the process have read before says nothing here. Damage is found where it is, not where it was.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import lance
from lance import LanceOperation, Session  # type: ignore[attr-defined]  # public, missing from its __all__
from lance.fragment import FragmentMetadata

from omnigraph.errors import FormatError
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.storage.tables.addresses import FragmentKey, key_of, keyed, live_offsets, open_fragments
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import index_folder, manifest_file
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.indexes import SegmentChange, dropping, with_segments
from omnigraph.storage.tables.staged_version import StagedVersion, as_staged
from omnigraph.storage.tables.tables import Tables


class Part(StrEnum):
    """What a file is to a version."""

    DATA = "data"
    DELETIONS = "deletions"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """A file that a version needs.

    Attributes:
        path: under the graph's root; of an index segment its folder, with a `/` at its end.
        part: what it is to the version.
        bytes: how large it was when it was written; -1 where the manifest does not say.
        rows: how many rows of this version it holds, or are in the fragment it belongs to.
        name: of an index, its name.
    """

    path: str
    part: Part
    bytes: int
    rows: int
    name: str = ""


class Examined:
    """One version, read from the store."""

    def __init__(self, handle: Handle, pin: Pin) -> None:
        self._handle = handle
        self.pin = pin

    @property
    def rows(self) -> int:
        """How many rows it holds, by its manifest."""
        return self._handle.rows

    @property
    def bytes(self) -> int:
        """How large its data files are, by its manifest."""
        return self._handle.data_bytes

    def expected(self) -> list[ExpectedFile]:
        """Every file it needs besides its manifest."""
        table = self._handle.table
        found = []
        with mapped(table, self.pin.version):
            assert self._handle.schema is not None  # read here: where it is damaged, so is the version, not its files
            for fragment in self._handle.fragments():
                for file in fragment.files:
                    size = -1 if file.file_size_bytes is None else file.file_size_bytes
                    found.append(ExpectedFile(f"{table}/data/{file.path}", Part.DATA, size, fragment.num_rows))
                if fragment.deletion_file is not None:
                    path = f"{table}/{fragment.deletion_file.path(fragment.id)}"
                    found.append(ExpectedFile(path, Part.DELETIONS, -1, fragment.num_rows))
            for index in self._handle.dataset.describe_indices():
                for segment in index.segments:
                    path = f"{table}/{index_folder(segment.uuid)}"
                    found.append(ExpectedFile(path, Part.INDEX, -1, 0, index.name))
        return found

    def read_rows(self, path: str) -> None:
        """Read every value of the rows in a data file.

        Raises:
            FormatError: something cannot be read.
        """
        with mapped(self._handle.table, self.pin.version):
            for fragment in self._handle.dataset.get_fragments():
                if any(path.endswith(f"/data/{file.path}") for file in fragment.metadata.files):
                    for _ in fragment.to_batches(blob_handling="all_binary"):
                        pass

    def read_deletions(self, path: str) -> None:
        """Read a deletion vector, and nothing else.

        Raises:
            FormatError: it cannot be read, or is not the one the version means.
        """
        with mapped(self._handle.table, self.pin.version):
            fragment = self._fragment_with(path)
            if fragment is not None:
                left = len(live_offsets(self._handle.dataset, fragment))
                if left != fragment.num_rows:
                    raise FormatError(f"it leaves {left} rows of its fragment, the version says {fragment.num_rows}")

    def files_under(self, path: str) -> FragmentKey | None:
        """The data files of the fragment that has a deletion vector; None where none has it."""
        fragment = self._fragment_with(path)
        return None if fragment is None else key_of(fragment)

    def ids_in(self, files: FragmentKey, damaged: Container[str]) -> set[str] | None:
        """The ids of the rows that a fragment shows here; None under a damaged vector, none where it is not there.

        Raises:
            FormatError: something cannot be read.
        """
        with mapped(self._handle.table, self.pin.version):
            fragment = keyed(self._handle.fragments()).get(files)
            if fragment is None:
                return set()
            vector = fragment.deletion_file
            if vector is not None and f"{self._handle.table}/{vector.path(fragment.id)}" in damaged:
                return None
            (opened,) = open_fragments(self._handle.dataset, [fragment])
            return set(map(str, opened.to_table(columns=[ID]).column(ID).to_pylist()))

    def deleted_rows(self, path: str, live: Container[str]) -> list[int] | None:
        """What a deletion vector holds that leaves the rows with some ids; None where the version says otherwise.

        Args:
            path: of the vector, under the root; what is there is not read.

        Raises:
            FormatError: the ids of the rows cannot be read.
        """
        fragment = self._fragment_with(path)
        if fragment is None:
            return None
        with mapped(self._handle.table, self.pin.version):
            operation = LanceOperation.Delete([replace(fragment, deletion_file=None)], [], "without deletions")
            whole = commit_detached(self._handle.dataset, operation, intermediate=True)
            (opened,) = open_fragments(whole, [fragment])
            ids = opened.to_table(columns=[ID]).column(ID).to_pylist()
        dead = [offset for offset, entity in enumerate(ids) if entity not in live]
        return dead if len(ids) - len(dead) == fragment.num_rows else None

    def _fragment_with(self, path: str) -> FragmentMetadata | None:
        with mapped(self._handle.table, self.pin.version):
            for fragment in self._handle.fragments():
                file = fragment.deletion_file
                if file is not None and f"{self._handle.table}/{file.path(fragment.id)}" == path:
                    return fragment
        return None

    def read_index(self, name: str) -> None:
        """Read an index whole.

        Raises:
            FormatError: something cannot be read.
        """
        with mapped(self._handle.table, self.pin.version):
            self._handle.dataset.prewarm_index(name)


class Examiner:
    """Opens versions past all caches."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._session = Session()

    def manifest_path(self, pin: Pin) -> str:
        """Where the manifest of a version lies, under the root."""
        return f"{pin.table}/{manifest_file(pin.version)}"

    def open(self, pin: Pin) -> Examined:
        """A version as it is on the store.

        Raises:
            FormatError: it is not there or damaged.
        """
        handles = self._tables._handles
        with mapped(pin.table, pin.version):
            dataset = lance.dataset(
                handles.uri_of(pin.table),
                version=pin.version,
                storage_options=handles.storage_options,
                session=self._session,
            )
        return Examined(Handle(pin.table, dataset), pin)

    def without(self, pin: Pin, damaged: Mapping[str, Part]) -> StagedVersion:
        """A version that does without damaged files: their rows are not in it, nor are indexes that need them.

        Args:
            pin: the version to start from; its manifest must be readable.

        Returns:
            The new version; the given one where it needs none of them.
        """
        handle = self.open(pin)._handle
        with mapped(pin.table, pin.version):
            lost = [fragment for fragment in handle.fragments() if _needs(handle.table, fragment, damaged)]
            names = {
                index.name
                for index in handle.dataset.describe_indices()
                if any(f"{handle.table}/{index_folder(segment.uuid)}" in damaged for segment in index.segments)
            }
            changes: list[SegmentChange] = [dropping(handle, name) for name in sorted(names)]
            made = handle
            if lost:
                operation = LanceOperation.Delete([], [fragment.id for fragment in lost], "rows in damaged files")
                version = commit_detached(handle.dataset, operation, intermediate=bool(changes))
                made = Handle(handle.table, version, handle.data_bytes - bytes_of(lost))
            made = with_segments(made, changes)
        return as_staged(pin, made, ())


def _needs(table: str, fragment: FragmentMetadata, damaged: Mapping[str, Part]) -> bool:
    needed = {f"{table}/data/{file}" for file in key_of(fragment)}
    if fragment.deletion_file is not None:
        needed.add(f"{table}/{fragment.deletion_file.path(fragment.id)}")
    return not needed.isdisjoint(damaged)
