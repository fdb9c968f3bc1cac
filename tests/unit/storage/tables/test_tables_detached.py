"""The one place where versions are made: on the very version they were staged on, and detached."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.dataset import Transaction
from lance.fragment import write_fragments

from omnigraph.errors import InternalError
from omnigraph.storage.tables.detached import commit_detached, is_detached, is_intermediate

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False)])


def append(handle: LanceDataset, name: str) -> LanceOperation.Append:
    return LanceOperation.Append(list(write_fragments(pa.table({"id": [name]}, schema=SCHEMA), handle)))


def names(handle: LanceDataset) -> list[str]:
    return sorted(map(str, handle.to_table().column("id").to_pylist()))


@pytest.fixture
def first(tmp_path: Path) -> LanceDataset:
    return lance.write_dataset(SCHEMA.empty_table(), str(tmp_path / "t"), schema=SCHEMA)


def test_a_version_made_is_detached_and_the_first_is_not(first: LanceDataset) -> None:
    made = commit_detached(first, append(first, "a"))
    assert is_detached(made.version)
    assert not is_detached(first.version)
    assert names(made) == ["a"]


def test_what_was_staged_on_one_version_is_not_applied_to_another(first: LanceDataset) -> None:
    base = commit_detached(first, append(first, "a"))
    other = commit_detached(base, append(base, "b"))
    staged = Transaction(base.version, append(base, "c"))
    with pytest.raises(InternalError):
        commit_detached(other, staged)
    assert names(commit_detached(base, staged)) == ["a", "c"]


def test_a_step_on_the_way_says_so_of_itself(first: LanceDataset) -> None:
    way = commit_detached(first, append(first, "a"), intermediate=True)
    last = commit_detached(way, append(way, "b"))
    for made, expected in ((way, True), (last, False)):
        transaction = made.read_transaction(made.version)
        assert transaction is not None
        assert is_intermediate(transaction.transaction_properties) is expected


def test_a_version_leaves_no_transaction_file_and_still_names_its_base(first: LanceDataset) -> None:
    made = commit_detached(first, append(first, "a"))

    left = sorted(file.name for file in Path(str(made.uri), "_transactions").iterdir())

    assert not [name for name in left if name.startswith(f"{first.version}-")]
    transaction = lance.dataset(str(made.uri), version=made.version).read_transaction(made.version)
    assert transaction is not None
    assert transaction.read_version == first.version


def test_properties_given_with_a_transaction_stay(first: LanceDataset) -> None:
    staged = Transaction(first.version, append(first, "a"), transaction_properties={"mine": "yes"})
    made = commit_detached(first, staged, intermediate=True)
    transaction = made.read_transaction(made.version)
    assert transaction is not None
    assert (transaction.transaction_properties or {})["mine"] == "yes"
