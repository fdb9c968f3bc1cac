"""A cluster as the command line addresses it: its graphs, its stored queries, its policies.

Where the address is a folder with a cluster.yaml, queries and policies are those of its files, so that they can be
tried before they are applied; elsewhere they are the applied ones. Graphs are always those that were applied.
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
    """A policy and what it is for.

    Attributes:
        name: of the policy.
        applies_to: graphs, or the cluster itself.
        text: the file.
    """

    name: str
    applies_to: tuple[str, ...]
    text: str

    def policy(self) -> Policy:
        """Ready to be asked.

        Raises:
            PolicyError: the file is wrong.
        """
        own = layout.CLUSTER_SCOPE in self.applies_to
        return Policy.parse(self.text, kind=rules.Kind.SERVER if own else rules.Kind.GRAPH)


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """The stored queries of a graph.

    Attributes:
        graph: which.
        texts: by name, the file each of them is in.
        schema: gives the schema they are about.
    """

    graph: str
    texts: dict[str, str]
    schema: Callable[[], Schema]


def graph_address(root: str, graph: str | None) -> str:
    """The storage of a graph of a cluster.

    Args:
        root: the cluster's storage, or the folder of its configuration.
        graph: which; None where there is only one.

    Raises:
        NotFoundError: there is no such graph, or no cluster.
        InvalidRequestError: there are several.
    """
    store = open_store(storage_root(root), read_only=True)
    known = ledger_state(store).graphs()
    if graph is not None and graph not in known and is_config_folder(root) and graph in _declared(root)[1].graphs:
        raise NotFoundError(
            f"graph '{graph}' is declared and not applied yet; run: omnigraph cluster apply", code="graph_not_applied"
        )
    return layout.graph_uri(store.uri, select_graph(known, graph))


def select_graph(graphs: Sequence[str], graph: str | None) -> str:
    """The graph that is meant.

    Raises:
        NotFoundError: there is no such graph.
        InvalidRequestError: there are several, or none at all.
    """
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
    """The policies of a cluster.

    Raises:
        GraphError: they cannot be read.
    """
    if is_config_folder(root):
        folder, declared, diagnostics = _declared(root)
        found = []
        for name, declared_policy in declared.policies.items():
            path = f"policies.{name}.file"
            body = read_file(
                folder, declared_policy.file, code="policy_file_missing", path=path, diagnostics=diagnostics
            )
            found.append(PolicyBundle(name, declared_policy.applies_to, "" if body is None else body.decode()))
        _refuse(diagnostics)
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
    """The policy that decides about an action.

    Args:
        found: all there are.
        graph: of which graph; None where there is only one policy for graphs.
        action: what is asked for; some are the cluster's own.

    Raises:
        NotFoundError: there is none.
        InvalidRequestError: there are several.
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
    """The stored queries of a graph.

    Raises:
        GraphError: they cannot be read, or it is not clear which graph is meant.
    """
    if is_config_folder(root):
        folder, declared, diagnostics = _declared(root)
        chosen = select_graph(tuple(declared.graphs), graph)
        one = declared.graphs[chosen]
        path = f"graphs.{chosen}"
        queries = find_queries(folder, one.queries, path=f"{path}.queries", diagnostics=diagnostics)
        _refuse(diagnostics)
        texts = {name: query.body.decode() for name, query in queries.items()}

        def declared_schema() -> Schema:
            body = read_file(
                folder, one.schema, code="schema_file_missing", path=f"{path}.schema", diagnostics=diagnostics
            )
            schema = None if body is None else parse_schema(body, one.schema, f"{path}.schema", diagnostics)
            _refuse(diagnostics)
            if schema is None:
                raise InvalidRequestError(f"{one.schema} is no schema", code="schema_parse_error")
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


def _declared(root: str) -> tuple[Path, Declared, Diagnostics]:
    diagnostics = Diagnostics()
    folder = Path(root).expanduser()
    declared = read_config(folder, diagnostics)
    _refuse(diagnostics)
    return folder, declared or Declared(), diagnostics


def _refuse(diagnostics: Diagnostics) -> None:
    wrong = [diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR]
    if wrong:
        raise InvalidRequestError(
            "\n".join(f"{diagnostic.code} {diagnostic.path}: {diagnostic.message}" for diagnostic in wrong),
            code=wrong[0].code,
        )
