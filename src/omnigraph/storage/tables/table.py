"""Reading one immutable version of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph import limits
from omnigraph.errors import NotFoundError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.blobs import StoredBlob, blob_at, rows_at
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import read_columns
from omnigraph.storage.tables.handles import Handle, plain_uri

ID = "id"
ADDRESS = "_rowaddr"
DISTANCE = "_distance"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index of one version.

    Attributes:
        name: its own name.
        columns: what it is on.
        kind: which sort, in Lance's words.
        segments: how many parts it has.
        rows: how many rows it covers.
        rows_missing: how many it does not.
    """

    name: str
    columns: tuple[str, ...]
    kind: str
    segments: int
    rows: int
    rows_missing: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of one version lie in fragments.

    Attributes:
        fragments: how many there are.
        small_fragments: how many are small enough to be compacted.
        deleted_rows: how many rows are deleted and still in the files.
    """

    fragments: int
    small_fragments: int
    deleted_rows: int


def quoted(text: str) -> str:
    """A text as a literal of the filter language."""
    return "'" + text.replace("'", "''") + "'"


class Table:
    """One version: opaque, immutable, with nothing that writes."""

    __slots__ = ("_handle", "_pin")

    def __init__(self, handle: Handle, pin: Pin) -> None:
        self._handle = handle
        self._pin = pin

    @property
    def pin(self) -> Pin:
        """Which version of which table."""
        return self._pin

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return self._handle.schema

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        limit: int | None = None,
        with_addresses: bool = False,
    ) -> pa.Table:
        """The rows, all at once.

        Args:
            with_addresses: add the column `_rowaddr`: where each row lies, `fragment << 32 | offset`.

        Raises:
            InvalidRequestError: the filter or a column is wrong.
            FormatError: a file of the version is missing or damaged.
            UnavailableError: the store does not answer.
        """
        with mapped(self._pin.table, self._pin.version):
            return self._handle.dataset.scanner(
                columns=None if columns is None else list(columns),
                filter=filter,
                limit=limit,
                with_row_address=with_addresses,
                blob_handling="all_binary",
            ).to_table()

    def batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        limit: int | None = None,
        with_addresses: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time, so that memory does not follow the table's size.

        Raises:
            InvalidRequestError: the filter or a column is wrong.
            FormatError: a file of the version is missing or damaged.
            UnavailableError: the store does not answer.
        """
        with mapped(self._pin.table, self._pin.version):
            rest = iter(
                self._handle.dataset.scanner(
                    columns=None if columns is None else list(columns),
                    filter=filter,
                    limit=limit,
                    with_row_address=with_addresses,
                    blob_handling="all_binary",
                ).to_batches()
            )
        while True:
            # Only the step into Lance is mapped: what the consumer raises at `yield` is the consumer's.
            with mapped(self._pin.table, self._pin.version):
                batch = next(rest, None)
            if batch is None:
                return
            yield batch

    def count(self, filter: str | None = None) -> int:
        """How many rows there are, or how many satisfy an SQL condition.

        Returns:
            The number; without a condition it is known from the manifest.
        """
        with mapped(self._pin.table, self._pin.version):
            return self._handle.rows if filter is None else int(self._handle.dataset.count_rows(filter=filter))

    def rows_with_ids(
        self,
        ids: "Sequence[str] | pa.Array[Any]",
        *,
        columns: Sequence[str] | None = None,
        with_addresses: bool = False,
    ) -> pa.Table:
        """The rows whose id is among `ids`; ids that do not occur are passed over.

        Few ids are looked up, through the index where there is one; many are found in one pass over the table.

        Args:
            ids: the ids, any number, any characters, repeated or not.
        """
        wanted = pc.unique(pa.array(ids, pa.string()))
        if len(wanted) == 1 and columns is not None and list(columns) == [ID]:
            return self._places_of(wanted, with_addresses=with_addresses)
        if len(wanted) <= limits.ID_FILTER_IDS_MAX:
            return self._rows_by_filter(wanted, columns, with_addresses=with_addresses)
        if len(wanted) <= self.count() * limits.ID_LOOKUP_ROWS_SHARE_MAX and self.is_indexed(ID):
            step = limits.ID_FILTER_IDS_MAX
            return pa.concat_tables(
                self._rows_by_filter(wanted.slice(start, step), columns, with_addresses=with_addresses)
                for start in range(0, len(wanted), step)
            )
        return self._rows_by_pass(wanted, columns, with_addresses=with_addresses)

    def rows_at(self, addresses: Sequence[int], *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows at these addresses; addresses of deleted rows are passed over."""
        with mapped(self._pin.table, self._pin.version):
            # Row ids are addresses in our tables: no table is created with stable row ids.
            names = self.schema.names if columns is None else list(columns)
            are_many = len(addresses) >= limits.TAKEN_APART_ROWS_MIN
            dataset = self._handle.taking if are_many else self._handle.dataset
            return rows_at(dataset, self.schema, addresses, names)

    def blob(self, id: str, column: str) -> StoredBlob | None:
        """The blob of one row; its bytes are read on demand.

        Raises:
            NotFoundError: there is no such row.
        """
        found = self.rows_with_ids([id], columns=[ID], with_addresses=True)
        if not len(found):
            raise NotFoundError(f"there is no entity with id '{id}'", code="entity_not_found", id=id)
        dataset = self._handle.dataset
        with mapped(self._pin.table, self._pin.version):
            number = next(
                stored[0].id for stored in read_columns(dataset.lance_schema).columns if stored[0].name == column
            )
            return blob_at(dataset, self.schema, int(found.column(ADDRESS)[0].as_py()), column, number)

    def is_indexed(self, column: str) -> bool:
        """Whether an index on the column exists, be it of a part of the rows only."""
        with mapped(self._pin.table, self._pin.version):
            return any(index.field_names == [column] for index in self._handle.dataset.describe_indices())

    def indexes(self) -> tuple[BuiltIndex, ...]:
        """The indexes there are, with how far they reach."""
        with mapped(self._pin.table, self._pin.version):
            rows = self._handle.rows
            return tuple(
                BuiltIndex(
                    name=index.name,
                    columns=tuple(index.field_names),
                    kind=index.index_type,
                    segments=len(index.segments),
                    rows=index.num_rows_indexed,
                    rows_missing=rows - index.num_rows_indexed,
                )
                for index in self._handle.dataset.describe_indices()
            )

    def layout(self) -> Layout:
        """How the rows lie in fragments; known from the manifest."""
        fragments = self._handle.fragments()
        return Layout(
            fragments=len(fragments),
            small_fragments=sum(fragment.num_rows < limits.SMALL_FRAGMENT_ROWS_MAX for fragment in fragments),
            deleted_rows=sum(fragment.num_deletions for fragment in fragments),
        )

    def nearest(
        self,
        column: str,
        vector: Sequence[float],
        *,
        count: int,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        metric: str = "l2",
        exact: bool = False,
        cells: int | None = None,
        refine: bool = True,
        with_addresses: bool = False,
    ) -> pa.Table:
        """The rows whose vector is nearest to `vector`.

        Args:
            filter: an SQL condition; only rows that satisfy it are ranked.
            metric: `l2`, `cosine` or `dot`; an index is used if it was built for the same.
            cells: how many cells of an index to look into; more find more and take longer.
            refine: read the vectors of what an index found and rank those; an index that keeps them whole has ranked
                them already.
        """
        query = {
            "column": column,
            "q": list(vector),
            "k": count,
            "metric": metric,
            "use_index": not exact,
            "nprobes": cells,
            # Compressed indexes only estimate: take more than asked for and rank those by their true distance.
            "refine_factor": limits.VECTOR_REFINE_FACTOR if refine else None,
        }
        with mapped(self._pin.table, self._pin.version):
            return self._handle.dataset.scanner(
                columns=None if columns is None else [*columns, DISTANCE],
                filter=filter,
                nearest=query,
                prefilter=True,
                with_row_address=with_addresses,
                blob_handling="all_binary",
            ).to_table()

    def _places_of(self, one: "pa.Array[Any]", *, with_addresses: bool) -> pa.Table:
        """The rows with one id, of which the id is known: where an index tells the address, no data is read."""
        found = self.scan(columns=[], filter=f"{ID} = {quoted(str(one[0].as_py()))}", with_addresses=True)
        named = found.add_column(0, self.schema.field(ID), pa.repeat(one[0], len(found)))
        return named if with_addresses else named.select([ID])

    def _rows_by_filter(
        self, wanted: "pa.Array[Any]", columns: Sequence[str] | None, *, with_addresses: bool
    ) -> pa.Table:
        listed = ",".join(quoted(one) for one in wanted.to_pylist() if one is not None)
        condition = f"{ID} IN ({listed})" if listed else "false"
        return self.scan(columns=columns, filter=condition, with_addresses=with_addresses)

    def _rows_by_pass(
        self, wanted: "pa.Array[Any]", columns: Sequence[str] | None, *, with_addresses: bool
    ) -> pa.Table:
        names = self.schema.names if columns is None else list(columns)
        found = pa.concat_tables([self._nothing([ID], with_addresses=True), *self._ids_among(wanted)])
        if set(names) <= {ID}:
            return found.select([*names, ADDRESS] if with_addresses else names)
        if not len(found):
            return self._nothing(names, with_addresses=with_addresses)
        # Ids and addresses are found first, then the other columns by address: comparing numbers in order costs
        # little, and no more than a batch of the wide columns is in memory besides what is wanted.
        addresses = np.sort(as_addresses(found.column(ADDRESS)))
        kept = [self._nothing(names, with_addresses=with_addresses)]
        for batch in self.batches(columns=names, with_addresses=True):
            place = np.searchsorted(addresses, as_addresses(batch.column(ADDRESS)))
            is_wanted = addresses.take(place, mode="clip") == as_addresses(batch.column(ADDRESS))
            kept.append(pa.Table.from_batches([batch.filter(pa.array(is_wanted))]).select(kept[0].column_names))
        return pa.concat_tables(kept)

    def _ids_among(self, wanted: "pa.Array[Any]") -> Iterator[pa.Table]:
        """The ids that are among `wanted`, with their addresses.

        Many batches are compared at once: every comparison hashes all of `wanted` again.
        """
        pending: list[pa.RecordBatch] = []
        for batch in self.batches(columns=[ID], with_addresses=True):
            pending.append(batch)
            if sum(one.num_rows for one in pending) >= limits.ID_PASS_ROWS_MAX:
                yield _among(pending, wanted)
                pending = []
        if pending:
            yield _among(pending, wanted)

    def _nothing(self, columns: Sequence[str], *, with_addresses: bool) -> pa.Table:
        return self.scan(columns=columns, filter="false", with_addresses=with_addresses)


def _among(batches: list[pa.RecordBatch], wanted: "pa.Array[Any]") -> pa.Table:
    together = pa.Table.from_batches(batches)
    return together.filter(pc.is_in(together.column(ID), value_set=wanted))


__all__ = ["LanceDataset", "as_lance_dataset"]


def as_lance_dataset(table: Table) -> LanceDataset:
    """A version as a Lance dataset, opened apart from the graph's own handles.

    For reading. Most of Lance's own writing methods refuse to work on a detached version, and what they do to others no
    commit names; but `cleanup_old_versions` would delete files that commits still need, and nothing here can stop it.
    """
    dataset = table._handle.dataset
    with mapped(table.pin.table, table.pin.version):
        plain = plain_uri(dataset)
        if plain == dataset.uri:
            return dataset.checkout_version(table.pin.version)
        return lance.dataset(plain, version=table.pin.version)


def filter_rows(rows: pa.Table, filter: str | None, *, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows that match `filter`, in the chosen columns."""
    if filter is not None and rows.num_rows:
        with mapped("pending rows"):
            rows = lance.write_dataset(rows, "memory://").scanner(filter=filter, blob_handling="all_binary").to_table()
    return rows if columns is None else rows.select(list(columns))
