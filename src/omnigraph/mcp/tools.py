"""The tools that an agent can use on a graph, with results of limited size as plain documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from omnigraph import limits
from omnigraph.api.documents import type_document
from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.snapshot import Snapshot
from omnigraph.errors import (
    AlreadyExistsError,
    GraphError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.mcp.answers import row_limit, truncate
from omnigraph.model.schema import NodeType, Property
from omnigraph.storage import paths

T = TypeVar("T")

# The size limit of each part of an answer in two parts.
_HALF_BYTES_MAX = limits.AGENT_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class Permissions:
    """What an agent may do.

    Attributes:
        writes: create branches, and write to branches other than `main`.
        main: also write to `main`.
        actor: the actor of its writes.
    """

    writes: bool = False
    main: bool = False
    actor: str | None = None


class Tools:
    """The tools of one graph."""

    def __init__(
        self, graph: Graph, permissions: Permissions, *, raise_if_cancelled: Callable[[], None] = lambda: None
    ) -> None:
        """Make the tools of a graph; `raise_if_cancelled` is called between the steps of each."""
        self._graph = graph
        self._permissions = permissions
        self._raise_if_cancelled = raise_if_cancelled
        # A server has limits of its own, and takes no others.
        is_local = isinstance(graph, Graph)
        self._query_limits = QueryLimits(seconds=limits.AGENT_QUERY_S_MAX) if is_local else DEFAULT_LIMITS

    # -- reading ------------------------------------------------------------------------------------------------------

    def schema(self, branch: str | None) -> dict[str, Any]:
        """Return the types with their entity counts, and the text of the schema."""
        with self._graph.snapshot(branch=branch) as snapshot:
            entities = self._cancellable(snapshot.schema.entities)
            documents = (type_document(entity, snapshot.count(entity.type_key)) for entity in entities)
            types = truncate(documents, limits.AGENT_ROWS_MAX, bytes_max=_HALF_BYTES_MAX)
            text = self._graph.schema_text(branch=snapshot.branch)
            fits = len(text.encode()) <= _HALF_BYTES_MAX
            return {
                "branch": snapshot.branch,
                "types": types.shown,
                "is_cut": types.is_cut or not fits,
                "schema": text if fits else None,
                "graph_commit_id": snapshot.commit,
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
        """Return the rows of a query, computing only those that are shown."""
        count_max = row_limit(limit)
        stream = self._graph.stream(query, params, name=name, branch=branch, commit=commit, limits=self._query_limits)
        rows = truncate(self._cancellable(stream), count_max)
        return {
            "columns": stream.columns,
            "rows": rows.shown,
            "row_count": len(rows.shown),
            "is_cut": rows.is_cut,
            "graph_commit_id": stream.commit,
        }

    def neighbourhood(
        self, type: str, id: str, *, edges: list[str], depth: int, limit: int, branch: str | None
    ) -> dict[str, Any]:
        """Return the nodes and edges around a node; the farthest are left out if they do not fit."""
        found = self._graph.neighbourhood(type, id, edges=edges, depth=depth, limit=limit, branch=branch)
        nodes = truncate((node.to_dict() for node in found.nodes), limit, bytes_max=_HALF_BYTES_MAX)
        shown = {(node["type"], node["id"]) for node in nodes.shown}
        between = (edge.to_dict() for edge in found.edges if edge.source in shown and edge.target in shown)
        joining = truncate(between, 2 * limits.AGENT_ROWS_MAX, bytes_max=_HALF_BYTES_MAX)
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
        """Return the nodes whose texts contain any of the words, best matches first."""
        count_max = row_limit(limit)
        if not text.strip():
            raise InvalidRequestError("the search text is empty: give one or more words")
        with self._graph.snapshot(branch=branch) as snapshot:
            matches: list[dict[str, Any]] = []
            for node, text_property in self._cancellable(_searched_properties(snapshot, type, property)):
                query = _search_query(node, text_property, fuzzy=misspelled, count=count_max + 1)
                rows = snapshot.query(query, {"q": text}, limits=self._query_limits)
                matches += [{"type": node.name, "id": row["id"], "property": text_property.name, **row} for row in rows]
            matches.sort(key=lambda row: (-(row.get("score") or 0.0), row["type"], row["id"], row["property"]))
            best = truncate(matches, count_max)
            return {"matches": best.shown, "is_cut": best.is_cut, "graph_commit_id": snapshot.commit}

    def diff(
        self, older: str, newer: str, *, types: list[str], limit: int | None, heads: bool = False
    ) -> dict[str, Any]:
        """Compare a branch with its merge base with another, or any two states: counts, and the changes that fit."""
        count_max = row_limit(limit)
        merge_base = not heads and {older, newer} <= set(self._graph.branches)
        difference = self._graph.diff(older, newer, types=types, merge_base=merge_base, engine="local")
        self._refuse_unknown(types, difference.from_commit, difference.to_commit)
        stats = {key: asdict(counts) for key, counts in difference.stats.items()}
        changes = truncate((change.to_dict() for change in self._cancellable(difference)), count_max)
        return {
            "from_commit_id": difference.from_commit,
            "to_commit_id": difference.to_commit,
            "stats": stats,
            "changes": changes.shown,
            "is_cut": changes.is_cut,
        }

    def branches(self) -> dict[str, Any]:
        """Return the names of the branches."""
        names = list(self._graph.branches)
        return {"branches": names[: limits.AGENT_ROWS_MAX], "is_cut": len(names) > limits.AGENT_ROWS_MAX}

    # -- writing ------------------------------------------------------------------------------------------------------

    def start_branch(self, name: str, source: str) -> dict[str, Any]:
        """Create a branch."""
        self._refuse_unless_writing()
        commit = self._graph.branches.create(name, source=source, actor=self._permissions.actor)
        return {"branch": paths.branch_name(name), "from": source, "graph_commit_id": commit}

    def propose(
        self, query: str, params: Mapping[str, object] | None, *, name: str | None, branch: str, message: str | None
    ) -> dict[str, Any]:
        """Write to a branch, which is created from `main` if missing."""
        self._refuse_unless_writing()
        where = paths.branch_name(branch)
        if where == MAIN_BRANCH and not self._permissions.main:
            raise PermissionDeniedError(
                f"writing to '{MAIN_BRANCH}' is not allowed here: name another branch, for people to merge",
                code="main_refused",
            )
        # Create no branch for a query that is not a mutation.
        if not self._graph.prepare(query, name=name, branch=self._existing(where)).is_mutation:
            raise InvalidRequestError("this query only reads; a proposal inserts, updates or deletes")
        actor = self._permissions.actor
        self._raise_if_cancelled()
        with self._branch_for_proposal(where) as is_new:
            result = self._graph.mutate(query, params, name=name, branch=where, actor=actor, message=message)
        return {
            "branch": where,
            "branch_created": is_new,
            "affected_nodes": result.affected_nodes,
            "affected_edges": result.affected_edges,
            "graph_commit_id": result.head,
            "changed": result.commit is not None,
        }

    @contextmanager
    def _branch_for_proposal(self, branch: str) -> Iterator[bool]:
        """Create the branch if missing; delete it again if the proposal fails and it has no other commits."""
        actor, created_at = self._permissions.actor, None
        if branch not in self._graph.branches:
            with suppress(AlreadyExistsError):  # another process created it meanwhile
                created_at = self._graph.branches.create(branch, source=MAIN_BRANCH, actor=actor)
        if created_at is None:
            yield False
            return
        try:
            yield True
        except BaseException:
            with suppress(GraphError):  # the first error is the one to report
                self._graph.branches.delete(branch, actor=actor, if_commit=created_at)
            raise

    def _cancellable(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self._raise_if_cancelled()
            yield item

    def _refuse_unknown(self, types: list[str], *commits: str) -> None:
        """Refuse a type that neither commit has, in which a diff would misleadingly find no difference."""
        if not types:
            return
        known = {entity.name for commit in commits for entity in self._graph.snapshot(commit=commit).schema.entities}
        for name in types:
            if name not in known:
                raise NotFoundError(
                    f"unknown type '{name}'; use {', '.join(sorted(known))}",
                    code="type_not_found",
                    type=name,
                )

    def _existing(self, branch: str) -> str:
        return branch if branch in self._graph.branches else MAIN_BRANCH

    def _refuse_unless_writing(self) -> None:
        if not self._permissions.writes:
            raise PermissionDeniedError("this graph is read-only from here", code="read_only")


def _searched_properties(
    snapshot: Snapshot, type_name: str | None, property_name: str | None
) -> list[tuple[NodeType, Property]]:
    """Return the text properties that a search covers.

    Raises:
        NotFoundError: there is no such type, or no text property.
        InvalidRequestError: there are too many.
    """
    if type_name is not None and snapshot.schema.node(type_name) is None:
        raise NotFoundError(f"there is no node type '{type_name}'", code="type_not_found", type=type_name)
    found = [
        (node, candidate)
        for node in snapshot.schema.nodes
        if type_name in (None, node.name)
        for candidate in node.properties
        if candidate.type.is_string and not candidate.type.is_enum and property_name in (None, candidate.name)
    ]
    if not found:
        raise NotFoundError("there is no text to search: no String property fits", code="property_not_found")
    if len(found) > limits.AGENT_SEARCHED_PROPERTIES_MAX:
        raise InvalidRequestError(
            f"{len(found)} properties hold texts, and a search covers at most "
            f"{limits.AGENT_SEARCHED_PROPERTIES_MAX}: name a type"
        )
    return found


def _search_query(node: NodeType, text_property: Property, *, fuzzy: bool, count: int) -> str:
    """Return the query that finds the best matches in one property; fuzzy matches have no score."""
    text = f"$n.{text_property.name}"
    condition = f"fuzzy({text}, $q)" if fuzzy else f"search({text}, $q)"
    score = "" if fuzzy else f", bm25({text}, $q) as score"
    order = "" if fuzzy else f" order {{ bm25({text}, $q) }}"
    return (
        f"query search($q: String) {{ match {{ $n: {node.name} {condition} }} "
        f"return {{ $n as id, {text} as text{score} }}{order} limit {count} }}"
    )
