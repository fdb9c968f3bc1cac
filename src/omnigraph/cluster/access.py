"""Graphs, stored queries and policies of a cluster, as the command line addresses them.

If the address is a folder with a cluster.yaml, queries and policies come from its files, so that they can be tried
before they are applied; otherwise they are the applied ones. Graphs are always the applied ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from omnigraph.cluster import addresses, layout
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.catalog import read_payload
from omnigraph.cluster.config import read_config
from omnigraph.cluster.declared import Declared
from omnigraph.cluster.desired import is_config_folder, parse_schema
from omnigraph.cluster.diagnostics import Diagnostics, Severity
from omnigraph.cluster.files import read_file
from omnigraph.cluster.serving import ledger_state, storage_root
from omnigraph.cluster.stored_queries import find_queries
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.schema import Schema
from omnigraph.policy import rules
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import SERVER_ACTIONS, Action
from omnigraph.storage.object_stores.open import open_store


@dataclass(frozen=True, slots=True)
class PolicyBundle:
    """Policy text with its scope."""

    name: str  # resource name in cluster.yaml
    applies_to: tuple[str, ...]  # graph ids, or `cluster` alone
    text: str  # content of the policy file

    def policy(self) -> Policy:
        """Parse the text."""
        is_for_cluster = layout.CLUSTER_SCOPE in self.applies_to
        return Policy.parse(self.text, kind=rules.Kind.SERVER if is_for_cluster else rules.Kind.GRAPH)


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """Stored queries of one graph."""

    graph: str  # graph id
    texts: dict[str, str]  # content of the query file, by query name
    schema: Callable[[], Schema]  # loads the schema to check the queries against


def graph_address(root: str, graph: str | None) -> str:
    """Return the storage address of a graph of a cluster."""
    store = open_store(storage_root(root), read_only=True)
    known = ledger_state(store).graphs()
    if graph is not None and graph not in known and is_config_folder(root) and graph in _read_declared(root)[1].graphs:
        raise NotFoundError(
            f"graph '{graph}' is declared and not applied yet; run: omnigraph cluster apply", code="graph_not_applied"
        )
    return layout.graph_uri(store.uri, select_graph(known, graph))


def select_graph(graphs: Sequence[str], graph: str | None) -> str:
    """Return the given graph id, or the only one there is."""
    known = ", ".join(sorted(graphs))
    if graph is not None:
        if graph not in graphs:
            raise NotFoundError(
                f"graph '{graph}' not found; the cluster has {known or 'no graphs'}", code="graph_not_found"
            )
        return graph
    if len(graphs) != 1:
        raise InvalidRequestError(
            f"which graph? the cluster has {known}; give --graph ID" if graphs else "the cluster has no graphs yet",
            code="no_address",
        )
    return graphs[0]


def read_policies(root: str) -> tuple[PolicyBundle, ...]:
    """Read the policies of a cluster."""
    if is_config_folder(root):
        folder, declared, diagnostics = _read_declared(root)
        found = []
        for name, declared_policy in declared.policies.items():
            path = f"policies.{name}.file"
            body = read_file(
                folder, declared_policy.file, code="policy_file_missing", path=path, diagnostics=diagnostics
            )
            found.append(PolicyBundle(name, declared_policy.applies_to, "" if body is None else body.decode()))
        _raise_errors(diagnostics)
        return tuple(found)
    store = open_store(root, read_only=True)
    state = ledger_state(store)
    applied = []
    for address, entry in sorted(state.resources.items()):
        parsed = addresses.parse(address)
        if parsed is not None and parsed.kind is Kind.POLICY:
            text = read_payload(store, layout.policy_payload(parsed.name, entry["digest"]), entry["digest"])
            applied.append(PolicyBundle(parsed.name, tuple(entry.get("applies_to", ())), text))
    return tuple(applied)


def select_policy(found: Sequence[PolicyBundle], graph: str | None, action: Action) -> PolicyBundle:
    """Return the policy that decides on an action.

    Without a graph id there must be only one policy for graphs. Server actions are decided by the cluster's own policy.
    """
    if action in SERVER_ACTIONS:
        matching = [bundle for bundle in found if layout.CLUSTER_SCOPE in bundle.applies_to]
        what = "the cluster itself"
    elif graph is not None:
        matching = [bundle for bundle in found if graph in bundle.applies_to]
        what = f"graph '{graph}'"
    else:
        matching = [bundle for bundle in found if layout.CLUSTER_SCOPE not in bundle.applies_to]
        what = "graphs"
    if not matching:
        raise NotFoundError(f"there is no policy for {what}", code="policy_not_found")
    if len(matching) > 1:
        names = ", ".join(f"{bundle.name} ({', '.join(bundle.applies_to)})" for bundle in matching)
        raise InvalidRequestError(f"which graph? there are the policies {names}; give --graph ID", code="no_address")
    return matching[0]


def read_stored_queries(root: str, graph: str | None) -> StoredQueries:
    """Read the stored queries of a graph."""
    if is_config_folder(root):
        folder, declared, diagnostics = _read_declared(root)
        chosen = select_graph(tuple(declared.graphs), graph)
        declared_graph = declared.graphs[chosen]
        path = f"graphs.{chosen}"
        queries = find_queries(folder, declared_graph.queries, path=f"{path}.queries", diagnostics=diagnostics)
        _raise_errors(diagnostics)
        texts = {name: query.body.decode() for name, query in queries.items()}

        def declared_schema() -> Schema:
            body = read_file(
                folder,
                declared_graph.schema,
                code="schema_file_missing",
                path=f"{path}.schema",
                diagnostics=diagnostics,
            )
            schema = None if body is None else parse_schema(body, declared_graph.schema, f"{path}.schema", diagnostics)
            _raise_errors(diagnostics)
            if schema is None:
                raise InvalidRequestError(f"{declared_graph.schema} is not a valid schema", code="schema_parse_error")
            return schema

        return StoredQueries(chosen, texts, declared_schema)
    store = open_store(root, read_only=True)
    state = ledger_state(store)
    chosen = select_graph(state.graphs(), graph)
    found = {
        name: read_payload(store, layout.query_payload(chosen, name, digest), digest)
        for name, digest in state.queries(chosen).items()
    }

    def applied_schema() -> Schema:
        from omnigraph.api.open import open as open_graph  # noqa: PLC0415  (heavy, and a list of names needs no graph)

        with open_graph(layout.graph_uri(store.uri, chosen), read_only=True) as opened:
            return opened.schema()

    return StoredQueries(chosen, found, applied_schema)


def _read_declared(root: str) -> tuple[Path, Declared, Diagnostics]:
    diagnostics = Diagnostics()
    folder = Path(root).expanduser()
    declared = read_config(folder, diagnostics)
    _raise_errors(diagnostics)
    return folder, declared or Declared(), diagnostics


def _raise_errors(diagnostics: Diagnostics) -> None:
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR]
    if errors:
        raise InvalidRequestError(
            "\n".join(f"{diagnostic.code} {diagnostic.path}: {diagnostic.message}" for diagnostic in errors),
            code=errors[0].code,
        )
