"""Open the graphs to serve, and refuse to start a server without a decision on who may use it."""

import logging
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.open import open as open_graph
from omnigraph.api.options import OpenOptions
from omnigraph.clock import SystemClock
from omnigraph.cluster.serving import ServedGraph as DeclaredGraph
from omnigraph.cluster.serving import embedding_environment, load_applied
from omnigraph.errors import GraphError, InvalidRequestError, UnavailableError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Kind
from omnigraph.server.graphs import Authority, Graphs, ServedGraph, graph_id_from_address, validate_graph_id
from omnigraph.server.logs import log
from omnigraph.server.metrics import MeteredStore
from omnigraph.server.settings import ServerSettings
from omnigraph.server.stored_queries import stored_queries
from omnigraph.storage.object_stores.open import open_store


def open_graphs(settings: ServerSettings) -> Graphs:
    """Open the graphs that the settings name.

    Raises:
        InvalidRequestError: no graph is named, or access is undecided.
        GraphError: a graph that must be served cannot be opened.
    """
    if (settings.store is None) == (settings.cluster is None):
        raise InvalidRequestError("name what to serve: --cluster DIR|URI, or --store URI for one graph")
    if settings.cluster is not None:
        return _open_cluster(settings, settings.cluster)
    return _open_store(settings, settings.store or "")


def _open_cluster(settings: ServerSettings, root: str) -> Graphs:
    cluster = load_applied(root, require_all=settings.require_all_graphs)
    policies = [declared.policy for declared in cluster.graphs if declared.policy is not None]
    require_access_decision(settings, has_policy=bool(policies) or cluster.policy is not None)
    served = {}
    for declared in cluster.graphs:
        try:
            if declared.quarantine is not None:
                raise UnavailableError(declared.quarantine)
            served[declared.id] = _open_declared(settings, declared)
        except GraphError as fault:
            # A broken graph must not stop the others: it is left out, and its routes return 404.
            if settings.require_all_graphs:
                raise
            log("graph put aside", level=logging.ERROR, graph=declared.id, reason=str(fault))
    if not served:
        raise InvalidRequestError(f"no graph of the cluster at {root} can be served", code="cluster_no_healthy_graphs")
    return Graphs(served, authority=Authority(not settings.tokens, cluster.policy))


def _open_declared(settings: ServerSettings, declared: DeclaredGraph) -> ServedGraph:
    options = OpenOptions(
        cache_bytes=settings.cache_bytes_max,
        durability=settings.durability,
        external_blobs=declared.external_blobs.for_servers(),
        embeddings=None if declared.provider is None else embedding_environment(declared.provider),
    )
    queries = stored_queries(declared.queries)
    graph = _open_metered(declared.uri, declared.id, settings, options)
    authority = Authority(not settings.tokens, declared.policy, declared.id)
    return ServedGraph(declared.id, graph, authority, queries, schema_is_managed=True)


def _open_store(settings: ServerSettings, store: str) -> Graphs:
    policy = None if settings.policy is None else _read_policy(settings.policy)
    require_access_decision(settings, has_policy=policy is not None)
    is_open = not settings.tokens
    graph_id = validate_graph_id(settings.graph_id) if settings.graph_id is not None else graph_id_from_address(store)
    graph = _open_metered(
        store, graph_id, settings, OpenOptions(durability=settings.durability, cache_bytes=settings.cache_bytes_max)
    )
    served = ServedGraph(graph_id, graph, Authority(is_open, policy, graph_id))
    return Graphs({graph_id: served}, authority=Authority(is_open))


def _open_metered(address: str, graph_id: str, settings: ServerSettings, options: OpenOptions) -> Graph:
    """Open a graph over a store that records metrics."""
    store = open_store(address, read_only=settings.read_only, durability=options.durability)
    metered = MeteredStore(store, graph_id, SystemClock())
    return open_graph(metered, read_only=settings.read_only, options=options)


def require_access_decision(settings: ServerSettings, *, has_policy: bool) -> None:
    """Check that the operator decided who may use the server.

    Raises:
        InvalidRequestError: they did not, or a policy names actors but there are no tokens.
    """
    if has_policy and not settings.tokens:
        raise InvalidRequestError(
            "there is a policy but there are no bearer tokens, so no request has an actor: set "
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE or OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
        )
    if not settings.tokens and not settings.unauthenticated:
        raise InvalidRequestError(
            "there are no bearer tokens and there is no policy: set OMNIGRAPH_SERVER_BEARER_TOKEN, or use "
            "--unauthenticated to allow every request"
        )


def _read_policy(file: str) -> Policy:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise InvalidRequestError(f"the policy {file} cannot be read: {fault}") from None
    return Policy.parse(text, kind=Kind.GRAPH)
