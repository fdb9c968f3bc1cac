"""What an agent can ask of a graph, and what it is answered: plain documents, within bounds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from omnigraph import limits
from omnigraph.api.documents import type_document
from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.errors import (
    AlreadyExistsError,
    GraphError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.mcp.answers import asked_for, fitted
from omnigraph.mcp.searching import searched
from omnigraph.storage import paths

T = TypeVar("T")

# Of an answer in two parts, what each may take.
_HALF = limits.AGENT_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class Permissions:
    """What an agent may do.

    Attributes:
        writes: make branches, and write to branches other than `main`.
        main: write to `main` too.
        actor: in whose name it writes.
    """

    writes: bool = False
    main: bool = False
    actor: str | None = None


class Tools:
    """A graph as an agent sees it."""

    def __init__(
        self, graph: Graph, permissions: Permissions, *, still_wanted: Callable[[], None] = lambda: None
    ) -> None:
        """The tools of one graph.

        Args:
            graph (Graph): what they are about.
            permissions (Permissions): what an agent may do.
            still_wanted (Callable[[], None]): is called between steps; it raises where nobody waits for the answer.
        """
        self._graph = graph
        self._permissions = permissions
        self._still_wanted = still_wanted
        # A server has limits of its own, and takes no others.
        is_here = isinstance(graph, Graph)
        self._allowed = QueryLimits(seconds=limits.AGENT_QUERY_S_MAX) if is_here else DEFAULT_LIMITS

    # -- reading ------------------------------------------------------------------------------------------------------

    def schema(self, branch: str | None) -> dict[str, Any]:
        """The types there are, how many entities of each, and the schema as it was written."""
        with self._graph.snapshot(branch=branch) as at:
            found = (type_document(each, at.count(each.type_key)) for each in self._while_wanted(at.schema.entities))
            types = fitted(found, limits.AGENT_ROWS_MAX, bytes_max=_HALF)
            text = self._graph.schema_text(branch=at.branch)
            fits = len(text.encode()) <= _HALF
            return {
                "branch": at.branch,
                "types": types.shown,
                "is_cut": types.is_cut or not fits,
                "schema": text if fits else None,
                "graph_commit_id": at.commit,
            }

    def query(
        self,
        query: str,
        params: Mapping[str, object] | None,
        *,
        name: str | None,
        branch: str | None,
        commit: str | None,
        limit: int | None,
    ) -> dict[str, Any]:
        """The rows of a query; no more are found than are shown."""
        most = asked_for(limit)
        found = self._graph.stream(query, params, name=name, branch=branch, commit=commit, limits=self._allowed)
        rows = fitted(self._while_wanted(found), most)
        return {
            "columns": found.columns,
            "rows": rows.shown,
            "row_count": len(rows.shown),
            "is_cut": rows.is_cut,
            "graph_commit_id": found.commit,
        }

    def neighbourhood(
        self, type: str, id: str, *, edges: list[str], depth: int, limit: int, branch: str | None
    ) -> dict[str, Any]:
        """What surrounds a node; where it does not fit, the farthest nodes are left out."""
        found = self._graph.neighbourhood(type, id, edges=edges, depth=depth, limit=limit, branch=branch)
        nodes = fitted((each.to_dict() for each in found.nodes), limit, bytes_max=_HALF)
        kept = {(each["type"], each["id"]) for each in nodes.shown}
        between = (each.to_dict() for each in found.edges if each.source in kept and each.target in kept)
        joining = fitted(between, 2 * limits.AGENT_ROWS_MAX, bytes_max=_HALF)
        return {
            "nodes": nodes.shown,
            "edges": joining.shown,
            "is_cut": found.is_cut or nodes.is_cut or joining.is_cut,
            "graph_commit_id": found.commit,
        }

    def search(
        self,
        text: str,
        *,
        type: str | None,
        property: str | None,
        misspelled: bool,
        limit: int | None,
        branch: str | None,
    ) -> dict[str, Any]:
        """The nodes whose texts have some words, the best first."""
        most = asked_for(limit)
        with self._graph.snapshot(branch=branch) as at:
            found = searched(
                at,
                text,
                type_name=type,
                property_name=property,
                misspelled=misspelled,
                most=most,
                allowed=self._allowed,
                still_wanted=self._still_wanted,
            )
            rows = fitted(found, most)
            return {"matches": rows.shown, "is_cut": rows.is_cut, "graph_commit_id": at.commit}

    def diff(
        self, older: str, newer: str, *, types: list[str], limit: int | None, heads: bool = False
    ) -> dict[str, Any]:
        """Compare a branch with where it parted from another, or any two states: counts, and changes that fit."""
        most = asked_for(limit)
        merge_base = not heads and {older, newer} <= set(self._graph.branches)
        found = self._graph.diff(older, newer, types=types, merge_base=merge_base, engine="local")
        self._refuse_unknown(types, found.from_commit, found.to_commit)
        stats = {key: asdict(each) for key, each in found.stats.items()}
        changes = fitted((each.to_dict() for each in self._while_wanted(found)), most)
        return {
            "from_commit_id": found.from_commit,
            "to_commit_id": found.to_commit,
            "stats": stats,
            "changes": changes.shown,
            "is_cut": changes.is_cut,
        }

    def branches(self) -> dict[str, Any]:
        """The branches there are."""
        names = list(self._graph.branches)
        return {"branches": names[: limits.AGENT_ROWS_MAX], "is_cut": len(names) > limits.AGENT_ROWS_MAX}

    # -- writing ------------------------------------------------------------------------------------------------------

    def make_branch(self, name: str, source: str) -> dict[str, Any]:
        """Make a branch."""
        self._refuse_unless_writing()
        commit = self._graph.branches.create(name, source=source, actor=self._permissions.actor)
        return {"branch": paths.branch_name(name), "from": source, "graph_commit_id": commit}

    def propose(
        self, query: str, params: Mapping[str, object] | None, *, name: str | None, branch: str, message: str | None
    ) -> dict[str, Any]:
        """Write to a branch, which is made from `main` where it is not there."""
        self._refuse_unless_writing()
        where = paths.branch_name(branch)
        if where == MAIN_BRANCH and not self._permissions.main:
            raise PermissionDeniedError(
                f"'{MAIN_BRANCH}' is not written to from here: name a branch of your own, for people to merge",
                code="main_refused",
            )
        # What cannot be a mutation makes no branch.
        if not self._graph.prepare(query, name=name, branch=self._existing(where)).is_mutation:
            raise InvalidRequestError("this query only reads; a proposal inserts, updates or deletes")
        actor = self._permissions.actor
        self._still_wanted()
        with self._made_for_this(where) as is_new:
            done = self._graph.mutate(query, params, name=name, branch=where, actor=actor, message=message)
        return {
            "branch": where,
            "branch_created": is_new,
            "affected_nodes": done.affected_nodes,
            "affected_edges": done.affected_edges,
            "graph_commit_id": done.head,
            "changed": done.commit is not None,
        }

    @contextmanager
    def _made_for_this(self, branch: str) -> Iterator[bool]:
        """A branch, made where it is not there; taken back if what it was made for fails and nobody else used it."""
        actor, made_at = self._permissions.actor, None
        if branch not in self._graph.branches:
            with suppress(AlreadyExistsError):  # somebody else has made it this moment
                made_at = self._graph.branches.create(branch, source=MAIN_BRANCH, actor=actor)
        if made_at is None:
            yield False
            return
        try:
            yield True
        except BaseException:
            with suppress(GraphError):  # what is wrong is told already
                self._graph.branches.delete(branch, actor=actor, if_commit=made_at)
            raise

    def _while_wanted(self, found: Iterable[T]) -> Iterator[T]:
        for each in found:
            self._still_wanted()
            yield each

    def _refuse_unknown(self, types: list[str], *commits: str) -> None:
        """A type that neither side knows is misspelled, and no difference in it would mislead."""
        if not types:
            return
        known = {each.name for commit in commits for each in self._graph.snapshot(commit=commit).schema.entities}
        for name in types:
            if name not in known:
                raise NotFoundError(
                    f"there is no type '{name}'; there are {', '.join(sorted(known))}",
                    code="type_not_found",
                    type=name,
                )

    def _existing(self, branch: str) -> str:
        return branch if branch in self._graph.branches else MAIN_BRANCH

    def _refuse_unless_writing(self) -> None:
        if not self._permissions.writes:
            raise PermissionDeniedError("this graph is read-only from here", code="read_only")
