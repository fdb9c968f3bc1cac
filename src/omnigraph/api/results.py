"""Results of writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.api.documents import commit_document
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import Record
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import dump_plan
from omnigraph.model.schema_cost import CostedStep
from omnigraph.pipeline.load.problems import Located


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The result of a mutation.

    Attributes:
        query_name: the mutation's name.
        branch: the branch that was changed.
        affected_nodes: how many nodes were inserted, updated or deleted.
        affected_edges: how many edges, those that went with their nodes included.
        commit: the id of the commit it made; None where nothing had to change.
        entry: the log entry of that commit; also None where another process made it.
        head: the commit the branch was at when the mutation was done: its own, or the one it found.
        number: the commit's place in the branch's log; None where there is none.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often the write ran; more than once if others changed what it had read.
        warnings: non-fatal problems, for information.
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
    """The result of writing rows. It always makes a commit, even if nothing changes.

    Attributes:
        branch: the branch that was changed.
        mode: `append`, `merge`, `overwrite` or `patch`.
        nodes: how many nodes of each type were given.
        edges: how many edges of each type were given.
        commit: the id of the commit.
        number: its place in the branch's log.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often the write ran; more than once if others changed what it had read.
        warnings: non-fatal problems, for information.
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


@dataclass(frozen=True, slots=True)
class SchemaApplied:
    """The result of applying a schema.

    Attributes:
        branch: the branch that was changed.
        plan: the steps that were made.
        commit: the id of the commit; None where nothing had to change.
        number: the place in the branch's log of that commit, or of the head that needed no change.
    """

    branch: str
    plan: SchemaPlan
    commit: str | None
    number: int

    @property
    def applied(self) -> bool:
        """Whether anything changed."""
        return self.commit is not None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        steps = dump_plan(self.plan.steps)
        return {
            "supported": steps["supported"],
            "applied": self.applied,
            "step_count": len(self.plan.steps),
            "graph_manifest_version": self.number,
            "steps": steps["steps"],
        }


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many entities of a type a merge inserts, updates and deletes on its target."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge, or of its preview.

    Attributes:
        outcome: `already_up_to_date`: the target has everything, and there is no new commit; `fast_forward`: only the
            source had moved; `merged`.
        source: the branch that was merged.
        into: the branch that was changed.
        base: the commit both were compared with; None where both heads were the same.
        source_commit: the source's head that was merged.
        commit: the commit made; None where none was.
        number: its place in the branch's log.
        head: the target's head commit afterwards.
        conflicts: of a preview, what stands in the way; otherwise empty, for conflicts are raised.
        changes: by type key, how much changes on the target; types without change are absent.
        resolved: how many entities were decided by `prefer` or a resolution.
        schema_steps: what becomes of the target's schema, and the rows and values that the target loses by that.
        is_preview: whether nothing was written.
        branch_deleted: whether the source was deleted afterwards.
        branch_delete_error: why it was not.
        attempts: how often the merge was worked out; more than once where the target moved meanwhile.
        warnings: non-fatal problems, for information.
    """

    outcome: str
    source: str
    into: str
    base: str | None
    source_commit: str
    commit: str | None
    number: int | None
    head: str
    conflicts: tuple[MergeConflict, ...] = ()
    changes: Mapping[str, ChangeCounts] = field(default_factory=dict)
    resolved: int = 0
    schema_steps: tuple[CostedStep, ...] = ()
    is_preview: bool = False
    branch_deleted: bool = False
    branch_delete_error: str | None = None
    attempts: int = 1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RevertResult:
    """The result of a revert.

    Attributes:
        branch: the branch that was changed.
        first: the first commit undone.
        last: the last commit undone; may be the same.
        commit: the id of the commit made; None where everything was as before already.
        number: its place in the branch's log.
        head: the branch's head commit afterwards.
        changes: by type key, how many entities came back, changed and went.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often it was worked out; more than once where the branch moved meanwhile.
        warnings: non-fatal problems, for information.
    """

    branch: str
    first: str
    last: str
    commit: str | None
    number: int | None
    head: str
    changes: Mapping[str, TypeChange] = field(default_factory=dict)
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. It makes a commit, even if nothing changes; a dry run makes none.

    Attributes:
        uri: of the graph.
        branch: the branch that was changed.
        mode: `append`, `merge` or `overwrite`.
        nodes: how many nodes of each type.
        edges: how many edges of each type.
        commit: the id of the commit; None of a dry run.
        entry: the log entry of that commit.
        base_branch: the branch to start from that the caller named.
        branch_created: whether the branch was made by this load.
        rejects: records put aside, with reason and place.
        rejects_file: where they are written.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often the write ran; more than once if others changed what it had read.
        warnings: non-fatal problems, for information.
    """

    uri: str
    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: str | None
    entry: Record | None = field(default=None, repr=False)
    base_branch: str | None = None
    branch_created: bool = False
    rejects: tuple[Located, ...] = ()
    rejects_file: str | None = None
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()

    @property
    def total_entities(self) -> int:
        """How many nodes and edges in all."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document: lists by name, of the types that were loaded."""
        document: dict[str, Any] = {"uri": self.uri, "branch": self.branch, "mode": self.mode}
        if self.base_branch is not None:
            document["base_branch"] = self.base_branch
        document |= {
            "branch_created": self.branch_created,
            "nodes": _counted(self.nodes),
            "edges": _counted(self.edges),
            "total_entities": self.total_entities,
            "commit": None if self.entry is None else commit_document(self.entry),
        }
        if self.rejects_file is not None:
            document |= {"rejected": len(self.rejects), "rejects": self.rejects_file}
        return document


def _counted(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": count} for name, count in sorted(counts.items())]
