"""Numbers of types, properties and tables, derived from what they stand for: equal changes have equal numbers.

A graph's first schema counts its numbers from 1. A later type or property gets a digest of its kind, its owner, its
name and how often that name was used up before: by something dropped, or renamed away. Two branches that add the same
property have one number for it, in whichever order they add it. What is dropped and added again has another.
"""

from collections.abc import Collection, Iterable
from hashlib import sha256

from omnigraph.model.schema import Schema

# Below are the numbers that were counted; above, at most 53 bits, so that every reader of JSON has them exactly.
FIRST_DERIVED = 2**52


def derived_number(domain: str, path: Iterable[str | int], taken: Collection[int]) -> int:
    """Return the number of something new.

    Args:
        domain: the schema's identity domain.
        path: what it is: its kind, the number of its owner, its name.
        taken: the numbers in use and the retired ones.
    """
    name = "/".join(map(str, (domain, *path)))
    turn = 0
    while True:
        found = FIRST_DERIVED + (int.from_bytes(sha256(f"{name}/{turn}".encode()).digest()[:8]) >> 12)
        if found not in taken:
            return found
        turn += 1


def is_gone(schema: Schema, number: int) -> bool:
    """Whether a schema had something of this number and dropped it."""
    if number >= schema.next_id:
        return number in schema.retired
    return number not in set(schema.numbers)


def retired_after(before: Schema, numbers: Collection[int]) -> tuple[int, ...]:
    """The retired numbers of a schema that follows another one and uses `numbers`."""
    gone = {number for number in before.numbers if number >= FIRST_DERIVED} | set(before.retired)
    return tuple(sorted(gone.difference(numbers)))
