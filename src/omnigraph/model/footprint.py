"""Write footprints: read set and write set as hashed tokens, small enough to compare without opening a table.

A footprint is, per type key, two sets of *tokens*: 64-bit hashes of short texts that name what was read or written.
On a hash collision a conflict is reported where there is none, and the write is validated again on a fresh base. The
opposite error, a missed conflict, cannot happen.

    id:{id}            the content of one entity       written by every insert, update and delete of it
    exists:{id}        that an entity is there or not  written by insert and delete, read by endpoint checks
    unique:{…}={…}     a value of a unique tuple       read by the check, written by whoever takes or frees it
    from:{id}          the edges that leave a node     read by cardinality checks, written by edge inserts and deletes
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from operator import mul

from omnigraph import limits


class TokenKind(StrEnum):
    """Kind of fact that a token names."""

    ID = "id"
    EXISTS = "exists"
    UNIQUE = "unique"
    FROM = "from"
    TO = "to"


_U64 = 2**64 - 1


def mixed(value: int) -> int:
    """Return a 64-bit number whose every bit depends on every bit of `value` (the finaliser of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & _U64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _U64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _U64
    return value ^ (value >> 31)


@lru_cache
def _weights(count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the weights of `count` positions, and their prefix sums."""
    weights = tuple(mixed(place) for place in range(count))
    return weights, (0, *accumulate(weights))


_WEIGHTS, _SUMS = _weights(64)


@lru_cache(limits.NAMES_REMEMBERED_MAX)
def _total(name: str) -> tuple[int, int]:
    """Return the weighted sum of a name's bytes (each plus one), and their number.

    Cached, because one write names the same entity in several kinds of tokens.
    """
    raw = name.encode("utf-8", "surrogatepass")
    size = len(raw)
    weights, sums = (_WEIGHTS, _SUMS) if size <= len(_WEIGHTS) else _weights(1 << size.bit_length())
    return sum(map(mul, raw, weights)) + sums[size], size


def seed(kind: TokenKind) -> int:
    """Return the initial hash of a kind; names of two kinds share no token."""
    return int.from_bytes(blake2b(kind.encode(), digest_size=8).digest(), "big")


_SEEDS = {kind: seed(kind) for kind in TokenKind}


def tokens(kind: TokenKind, names: Iterable[str]) -> frozenset[int]:
    """Hash `names`: the weighted sum of their bytes, mixed with the kind and the length.

    The sum makes it fast over whole columns (`transaction/write_set/pending.py` computes it in one pass over them). The
    result is written to disk: the function must never change without a new format.
    """
    start = _SEEDS[kind]
    return frozenset([mixed((total ^ start) + size & _U64) for total, size in map(_total, names)])


@dataclass(frozen=True, slots=True)
class TypeFootprint:
    """Read set and write set of one type.

    Attributes:
        reads: tokens read.
        writes: tokens written.
        reads_whole: the answer depended on every entity of the type (a scan with a predicate).
        writes_whole: every entity of the type may have changed (overwrite, schema rewrite).
        changes_layout_only: rows were moved without changing their meaning (compaction, index).
    """

    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    reads_whole: bool = False
    writes_whole: bool = False
    changes_layout_only: bool = False

    def merged(self, other: "TypeFootprint") -> "TypeFootprint":
        """Return the union of both footprints."""
        return TypeFootprint(
            self.reads | other.reads,
            self.writes | other.writes,
            self.reads_whole or other.reads_whole,
            self.writes_whole or other.writes_whole,
            self.changes_layout_only or other.changes_layout_only,
        )

    @property
    def changes_content(self) -> bool:
        """True if anything a reader could see may have changed."""
        return bool(self.writes) or self.writes_whole


NOTHING = TypeFootprint()


@dataclass(frozen=True, slots=True)
class Footprint:
    """Read set and write set of one write, by type key.

    Attributes:
        types: per type key; empty when the parts lie in `file`.
        file: path of the file that holds them, when they are too many for the record.
    """

    types: dict[str, TypeFootprint] = field(default_factory=dict)
    file: str | None = None

    def of(self, type_key: str) -> TypeFootprint:
        """Return one type's part; empty if the write did not touch the type."""
        return self.types.get(type_key, NOTHING)

    @property
    def token_count(self) -> int:
        """Number of tokens over all types."""
        return sum(len(part.reads) + len(part.writes) for part in self.types.values())

    def merged(self, other: "Footprint") -> "Footprint":
        """Return the union of both footprints."""
        keys = self.types.keys() | other.types.keys()
        return Footprint({key: self.of(key).merged(other.of(key)) for key in sorted(keys)})


def has_conflict(ours: TypeFootprint, theirs: TypeFootprint) -> bool:
    """True if a committed write with footprint `theirs` changes what `ours` read or wrote.

    Their read set does not matter: they come first in the serial order, before our writes.
    """
    if not theirs.changes_content:
        return False
    touched = bool(ours.reads or ours.writes)
    if theirs.writes_whole:
        return touched or ours.reads_whole or ours.writes_whole
    if ours.reads_whole or ours.writes_whole:
        return True
    return not (theirs.writes.isdisjoint(ours.reads) and theirs.writes.isdisjoint(ours.writes))
