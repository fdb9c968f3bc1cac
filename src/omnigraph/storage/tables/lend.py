"""Lending a table version to readers who know Lance themselves."""

import lance
from lance import LanceDataset

from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.handles import plain_uri
from omnigraph.storage.tables.table import Table

__all__ = ["LanceDataset", "lend"]


def lend(table: Table) -> LanceDataset:
    """A version as a Lance dataset, opened apart from the graph's own handles.

    For reading. Most of Lance's own writing methods refuse to work on a detached version, and what they do to others no
    commit names; but `cleanup_old_versions` would delete files that commits still need, and nothing here can stop it.

    Args:
        table (Table): the version.

    Returns:
        LanceDataset: for reading.
    """
    dataset = table._handle.dataset
    with mapped(table.pin.table, table.pin.version):
        plain = plain_uri(dataset)
        if plain == dataset.uri:
            return dataset.checkout_version(table.pin.version)
        return lance.dataset(plain, version=table.pin.version)
