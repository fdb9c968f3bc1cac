"""People who know each other by a few well-known ones, as real ones do, in JSON lines; the same every time."""

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

CITIES = ("London", "Arlington", "Rotterdam", "Delft", "Turin")
_SEED = 7


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many there are.

    Attributes:
        people: nodes.
        acquaintances: edges between them; every person also lives in a city, which is an edge more.
    """

    people: int
    acquaintances: int

    @property
    def nodes(self) -> int:
        """People and cities."""
        return self.people + len(CITIES)

    @property
    def edges(self) -> int:
        """Acquaintances and homes."""
        return self.acquaintances + self.people


def write_crowd(crowd: Crowd, path: Path, *, famous: str) -> int:
    """Write a crowd down.

    Args:
        crowd (Crowd): how many.
        path (Path): the file.
        famous (str): somebody who is there already, and knows the first forty.

    Returns:
        int: how many bytes the file has.
    """
    chance = np.random.default_rng(_SEED)
    names = pc.binary_join_element_wise("person-", pa.array(np.arange(crowd.people)).cast(pa.string()), "")
    ages = pa.array(chance.integers(1, 100, crowd.people)).cast(pa.string())
    known = np.minimum((crowd.people * chance.power(0.4, crowd.acquaintances)).astype(np.int64), crowd.people - 1)
    knowing = chance.integers(0, crowd.people, crowd.acquaintances)
    knowing_names, known_names = names.take(pa.array(knowing)), names.take(pa.array(known))
    since = pa.array(chance.integers(1950, 2025, crowd.acquaintances)).cast(pa.string())
    # The first forty acquaintances are somebody's whom the tour asks about.
    knowing_names = pa.concat_arrays([pa.array([famous] * 40), knowing_names.slice(40)])
    homes = pa.array(CITIES).take(chance.integers(0, len(CITIES), crowd.people))
    with path.open("wb") as file:
        for city in CITIES:
            file.write(f'{{"type":"City","data":{{"name":"{city}"}}}}\n'.encode())
        _lines(file, '{"type":"Person","data":{"name":"', names, '","age":', ages, "}}\n")
        _lines(file, '{"edge":"LivesIn","from":"', names, '","to":"', homes, '"}\n')
        _lines(
            file,
            '{"edge":"Knows","from":"',
            knowing_names,
            '","to":"',
            known_names,
            '","data":{"since":',
            since,
            "}}\n",
        )
    return path.stat().st_size


def _lines(file: IO[bytes], *parts: "str | pa.Array[Any]") -> None:
    lines = pc.binary_join_element_wise(*parts, "")
    file.write("".join(lines.to_pylist()).encode())
