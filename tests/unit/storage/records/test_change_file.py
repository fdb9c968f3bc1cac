"""Change sets too large for their record."""

import pytest

from omnigraph.errors import FormatError
from omnigraph.model.change import TypeChange
from omnigraph.storage.records.change_file import ChangedIds, change_file_bytes, read_change_file


def test_what_is_written_is_read_back_in_the_same_order() -> None:
    body = change_file_bytes(
        {
            "node:Person": ChangedIds(["b", "a"], [], ["c"]),
            "edge:Knows": ChangedIds([], ["é", ""], []),
        }
    )

    assert read_change_file(body, path="x") == {
        "node:Person": TypeChange(2, 0, 1, ("b", "a"), (), ("c",)),
        "edge:Knows": TypeChange(0, 2, 0, (), ("é", ""), ()),
    }


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_a_file_cut_short_is_named_as_damaged(cut: int) -> None:
    body = change_file_bytes({"node:Person": ChangedIds(["a"], [], [])})

    with pytest.raises(FormatError, match=r"changes/x\.arrow is damaged"):
        read_change_file(body[:cut], path="changes/x.arrow")
