"""Few rows written straight into a data file of their own.

Lance's writer of fragments is made for streams of any size; for one row most of its time goes into starting and
stopping what a stream needs. The file here is the same, by the same encoder. How a file of the table is described in a
version is learnt from one that Lance has written for the very same columns, so no rule of the format is repeated here.
"""

import os
from functools import lru_cache

import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileSession
from lance.fragment import DataFile, FragmentMetadata

from omnigraph import limits


class SmallFiles:
    """Writes small fragments of one table with certain columns. Safe to use from several threads."""

    def __init__(self, session: LanceFileSession, schema: pa.Schema, pattern: DataFile) -> None:
        self._session = session
        self._schema = schema
        self._pattern = pattern

    def takes(self, rows: pa.Table) -> bool:
        """Whether rows, which have the table's columns, are few enough."""
        most = limits.SMALL_FILE_BYTES_MAX
        return 0 < rows.num_rows <= limits.SMALL_FILE_ROWS_MAX and (
            # What they lie in, first: to count exactly takes long for one row.
            rows.get_total_buffer_size() <= most or rows.nbytes <= most
        )

    def write(self, rows: pa.Table) -> FragmentMetadata:
        """Write rows as one fragment, which no version has numbered yet.

        Args:
            rows (pa.Table): in the table's own columns.

        Returns:
            FragmentMetadata: as Lance's own writer gives it.
        """
        known = self._pattern
        name = f"{os.urandom(16).hex()}.lance"
        writer = self._session.open_writer(
            name, schema=self._schema, version=f"{known.file_major_version}.{known.file_minor_version}"
        )
        writer.write_batch(rows)
        writer.close()
        file = DataFile(
            name,
            known.fields,
            known.column_indices,
            known.file_major_version,
            known.file_minor_version,
            writer.size_bytes,
        )
        return FragmentMetadata(id=0, files=[file], physical_rows=rows.num_rows)


def learnt_from(dataset: LanceDataset, schema: pa.Schema, written: FragmentMetadata) -> SmallFiles | None:
    """A writer of files like one that Lance has just written.

    Args:
        dataset (LanceDataset): the version it was written for.
        schema (pa.Schema): the columns of that version.
        written (FragmentMetadata): with the description of the file.

    Returns:
        SmallFiles | None: None for columns that are more than one plain column in a file.
    """
    if len(written.files) != 1 or not all(
        pa.types.is_primitive(kind) or pa.types.is_string(kind) for kind in schema.types
    ):
        return None
    return SmallFiles(_session(f"{dataset.uri}/data"), schema, written.files[0])


@lru_cache(limits.OPEN_TABLES_MAX)
def _session(folder: str) -> LanceFileSession:
    """What opens files in a folder; making one takes longer than writing a small file."""
    return LanceFileSession(folder)
