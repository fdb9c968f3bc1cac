"""Generate the sample data of the tour: a social network with a skewed degree distribution, from a fixed seed."""

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

# The stubs type a kernel only where the Arrow type is known.
pc: Any = pyarrow.compute

CITIES = ("London", "Arlington", "Rotterdam", "Delft", "Turin")
_SEED = 7


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The size of a sample.

    Attributes:
        people: the number of people.
        acquaintances: the number of edges between them; each person also has an edge to a city.
    """

    people: int
    acquaintances: int

    @property
    def nodes(self) -> int:
        """The number of people and cities."""
        return self.people + len(CITIES)

    @property
    def edges(self) -> int:
        """The number of acquaintances and homes."""
        return self.acquaintances + self.people


def write_sample(size: SampleSize, path: Path, *, hub: str) -> int:
    """Write a sample as JSON lines; return the size of the file in bytes.

    Args:
        size: how many people and acquaintances.
        path: the file.
        hub: an existing person, who gets the first forty acquaintances.
    """
    random = np.random.default_rng(_SEED)
    names = pc.binary_join_element_wise("person-", pa.array(np.arange(size.people)).cast(pa.string()), "")
    ages = pa.array(random.integers(1, 100, size.people)).cast(pa.string())
    targets = np.minimum((size.people * random.power(0.4, size.acquaintances)).astype(np.int64), size.people - 1)
    sources = random.integers(0, size.people, size.acquaintances)
    source_names, target_names = names.take(pa.array(sources)), names.take(pa.array(targets))
    since = pa.array(random.integers(1950, 2025, size.acquaintances)).cast(pa.string())
    # The tour queries the acquaintances of the hub.
    source_names = pa.concat_arrays([pa.array([hub] * 40), source_names.slice(40)])
    homes = pa.array(CITIES).take(random.integers(0, len(CITIES), size.people))
    with path.open("wb") as file:
        for city in CITIES:
            file.write(f'{{"type":"City","data":{{"name":"{city}"}}}}\n'.encode())
        _write_lines(file, '{"type":"Person","data":{"name":"', names, '","age":', ages, "}}\n")
        _write_lines(file, '{"edge":"LivesIn","from":"', names, '","to":"', homes, '"}\n')
        _write_lines(
            file,
            '{"edge":"Knows","from":"',
            source_names,
            '","to":"',
            target_names,
            '","data":{"since":',
            since,
            "}}\n",
        )
    return path.stat().st_size


def _write_lines(file: IO[bytes], *parts: "str | pa.Array[Any]") -> None:
    lines = pc.binary_join_element_wise(*parts, "")
    file.write("".join(lines.to_pylist()).encode())
