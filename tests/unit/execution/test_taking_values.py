"""Values at places: one that is not there is an error, never memory beyond an end."""

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.execution.arrays import Values, take_fast


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_values_are_taken_in_the_order_of_their_places(kind: type[np.integer]) -> None:
    values = pa.array(["a", None, "c"])
    assert take_fast(values, np.array([2, 0, 1, 2], kind)).to_pylist() == ["c", "a", None, "c"]
    assert take_fast(values, np.array([9, 2, 9, 0], kind)[1::2]).to_pylist() == ["c", "a"]
    assert take_fast(values, np.array([], kind)).to_pylist() == []


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("place", [-1, 3, 2_000_000])
@pytest.mark.parametrize("values", [pa.array([1, 2, 3]), pa.array([], pa.int32())], ids=["three", "none"])
def test_a_place_that_is_not_there_is_an_error(kind: type[np.integer], place: int, values: Values) -> None:
    with pytest.raises(pa.ArrowIndexError):
        take_fast(values, np.array([place], kind))
