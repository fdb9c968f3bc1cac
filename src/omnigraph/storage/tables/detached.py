"""The one place where a version of a table is made.

Invariants:
    The version is detached: on no lineage, named by a random number, invisible without that number.
    The operation was staged on the very version it is applied to. Lance checks nothing about a detached version, so
    nothing else would notice.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction

from omnigraph.errors import InternalError
from omnigraph.storage.tables.handles import plain_uri

_DETACHED_BIT = 63
_INTERMEDIATE = "omnigraph.intermediate"


def is_detached(version: int) -> bool:
    """Whether a version number is that of a detached version."""
    return bool(version >> _DETACHED_BIT)


def is_intermediate(properties: Mapping[str, str] | None) -> bool:
    """Whether a transaction's properties say that it made a step on the way, not a version anybody was given."""
    return properties is not None and _INTERMEDIATE in properties


def commit_detached(
    handle: LanceDataset, operation: LanceOperation.BaseOperation | Transaction, *, intermediate: bool = False
) -> LanceDataset:
    """Make a detached version: `operation`, staged on `handle`, applied to `handle`.

    Args:
        intermediate: the version is only a step to another one, which alone will be pinned. It is written into the
            version, so that whoever gives up the last one can tell which others go with it.

    Raises:
        InternalError: the operation was staged on another version, or what came out is not detached.
    """
    if not isinstance(operation, Transaction):
        operation = Transaction(handle.version, operation)
    if operation.read_version != handle.version:
        raise InternalError(f"staged on version {operation.read_version}, applied to {handle.version}")
    if intermediate:
        operation.transaction_properties = {**(operation.transaction_properties or {}), _INTERMEDIATE: "true"}
    made = LanceDataset.commit(handle, operation, detached=True)
    if not is_detached(made.version):
        raise InternalError(f"version {made.version} was to be detached and is not")
    _drop_transaction_file(made, operation)
    return made


def _drop_transaction_file(made: LanceDataset, transaction: Transaction) -> None:
    """Delete the copy that Lance puts beside a manifest, which has the transaction inside; on object stores, sweeps do.

    It would be a block of disk for each table in each small commit.
    """
    folder = plain_uri(made)
    if "://" not in folder:
        with contextlib.suppress(OSError):
            Path(folder, transaction_file(transaction.read_version, transaction.uuid)).unlink()


def transaction_file(base: int, uuid: str) -> str:
    """The file Lance writes for a transaction, under the table's folder."""
    return f"_transactions/{base}-{uuid}.txn"
