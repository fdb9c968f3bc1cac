"""Lending a table version to readers who know Lance themselves."""

from lance import LanceDataset

from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.table import Table


def lend(table: Table) -> LanceDataset:
    """A version as a Lance dataset, opened apart from the graph's own handles.

    The version is detached: Lance's own writing methods refuse to work on it, and nothing that is done to the returned
    object reaches the graph.

    Args:
        table (Table): the version.

    Returns:
        LanceDataset: for reading.
    """
    with mapped(table.pin.table, table.pin.version):
        return table._handle.dataset.checkout_version(table.pin.version)
