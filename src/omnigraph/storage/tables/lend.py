"""Lending a table version to readers who know Lance themselves."""

from lance import LanceDataset

from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.table import Table


def lend(table: Table) -> LanceDataset:
    """A version as a Lance dataset, opened apart from the graph's own handles.

    Nothing that is done to it reaches the graph: on a detached version Lance's own writing methods refuse to work, and
    on the first, empty one they make versions that no commit names.

    Args:
        table (Table): the version.

    Returns:
        LanceDataset: for reading.
    """
    with mapped(table.pin.table, table.pin.version):
        return table._handle.dataset.checkout_version(table.pin.version)
