"""What a write returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.model.commit import Record


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What came of a mutation.

    Attributes:
        query_name: the mutation's name.
        branch: where.
        affected_nodes: how many nodes were inserted, updated or deleted.
        affected_edges: how many edges, those that went with their nodes included.
        commit: the id of the commit it made; None where nothing had to change.
        entry: the same, whole; also None where another process made it.
        head: the commit the branch was at when the mutation was done: its own, or the one it found.
        number: the commit's place in the branch's log; None where there is none.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often the write ran; more than once where others changed what it had read.
        warnings: what did not go well and needs nobody.
    """

    query_name: str
    branch: str
    affected_nodes: int
    affected_edges: int
    commit: str | None
    head: str
    number: int | None = None
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()
    entry: Record | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What came of writing rows. It always makes a commit, even where nothing changes.

    Attributes:
        branch: where.
        mode: how.
        nodes: how many nodes of each type were given.
        edges: how many edges of each type were given.
        commit: the id of the commit.
        number: its place in the branch's log.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often the write ran; more than once where others changed what it had read.
        warnings: what did not go well and needs nobody.
    """

    branch: str
    mode: str
    commit: str
    number: int
    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[str, int] = field(default_factory=dict)
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()
