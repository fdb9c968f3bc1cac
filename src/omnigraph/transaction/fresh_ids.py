"""Many new ids at once: as ULIDs made one by one, and as unlikely to meet another's."""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.ids import ULID_LENGTH, IdSource

_LETTERS = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_TIME_LENGTH = 10
_CHANCE_BYTES = 10
_PLACES = np.array([16, 8, 4, 2, 1], dtype=np.uint8)
_ONE_BY_ONE_MAX = 8


def fresh_ids(source: IdSource, count: int) -> "pa.Array[Any]":
    """New ids, in rising order.

    Few come from the source one by one. Many share the time of one id of the source, and their 80 bits of chance are
    spread out of that id's own: what is certain of the source's ids is then as certain of these.

    Args:
        source: where ids come from.
        count: how many.

    Returns:
        Strings, no two equal.
    """
    if count <= _ONE_BY_ONE_MAX:
        return pa.array([source.new() for _ in range(count)], pa.string())
    seed = source.new().encode("ascii")
    chance = np.frombuffer(hashlib.shake_256(seed).digest(_CHANCE_BYTES * count), dtype=np.uint8)
    fives = np.unpackbits(chance.reshape(count, _CHANCE_BYTES), axis=1).reshape(count, -1, len(_PLACES)) @ _PLACES
    letters = np.empty((count, ULID_LENGTH), dtype=np.uint8)
    letters[:, :_TIME_LENGTH] = np.frombuffer(seed[:_TIME_LENGTH], dtype=np.uint8)
    letters[:, _TIME_LENGTH:] = _LETTERS[fives]
    rising = np.sort(letters.view(f"S{ULID_LENGTH}").ravel())
    ends = np.arange(0, ULID_LENGTH * (count + 1), ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(rising))  # type: ignore[arg-type]  # any buffer will do
