"""Stable ids of types, properties and tables, derived from what they name: equal changes get equal ids.

A graph's first schema counts its ids from 1. A later type or property gets a digest of its kind, owner and name and of
how often that name was used before: by something dropped or renamed. Two branches that add the same property give it
the same id, in whichever order they add it. A property that is dropped and added again gets another.
"""

from collections.abc import Collection, Iterable
from hashlib import sha256

from omnigraph.model.schema import Schema

# Below are the numbers that were counted; above, at most 53 bits, so that every reader of JSON has them exactly.
FIRST_DERIVED = 2**52


def derive_schema_id(domain: str, path: Iterable[str | int], taken: Collection[int]) -> int:
    """Derive the id of a new type, property or table.

    Args:
        domain: identity domain of the schema.
        path: kind, owner's id and name.
        taken: ids in use and retired ids.
    """
    name = "/".join(map(str, (domain, *path)))
    turn = 0
    while True:
        found = FIRST_DERIVED + (int.from_bytes(sha256(f"{name}/{turn}".encode()).digest()[:8]) >> 12)
        if found not in taken:
            return found
        turn += 1


def is_gone(schema: Schema, number: int) -> bool:
    """True if a schema had this id and dropped it."""
    if number >= schema.next_id:
        return number in schema.retired
    return number not in set(schema.numbers)


def find_retired(before: Schema, numbers: Collection[int]) -> tuple[int, ...]:
    """Return the retired ids of a schema that follows `before` and uses `numbers`."""
    gone = {number for number in before.numbers if number >= FIRST_DERIVED} | set(before.retired)
    return tuple(sorted(gone.difference(numbers)))
