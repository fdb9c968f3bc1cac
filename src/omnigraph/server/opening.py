"""Opening what is to be served, and deciding whether a server may start at all."""

import logging
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.open import open as open_graph
from omnigraph.api.options import OpenOptions
from omnigraph.clock import SystemClock
from omnigraph.cluster.serving import ServedGraph as Declared
from omnigraph.cluster.serving import applied, environment
from omnigraph.errors import GraphError, InvalidRequestError, UnavailableError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Kind
from omnigraph.server.authorize import Authority
from omnigraph.server.graphs import Graphs, ServedGraph, checked_id, id_from
from omnigraph.server.logs import log
from omnigraph.server.metered_store import MeteredStore
from omnigraph.server.settings import ServerSettings
from omnigraph.server.stored import stored_queries
from omnigraph.storage.object_stores.open import open_store


def open_graphs(settings: ServerSettings) -> Graphs:
    """Open everything that is to be served.

    Raises:
        InvalidRequestError: nothing is named, or nobody said who may come in.
        GraphError: a graph that must be served cannot be opened.
    """
    if (settings.store is None) == (settings.cluster is None):
        raise InvalidRequestError("name what to serve: --cluster DIR|URI, or --store URI for one graph")
    if settings.cluster is not None:
        return _cluster(settings, settings.cluster)
    return _one_graph(settings, settings.store or "")


def _cluster(settings: ServerSettings, root: str) -> Graphs:
    found = applied(root, require_all=settings.require_all_graphs)
    policies = [each.policy for each in found.graphs if each.policy is not None]
    refuse_ambiguity(settings, has_policy=bool(policies) or found.policy is not None)
    served = {}
    for each in found.graphs:
        try:
            if each.quarantine is not None:
                raise UnavailableError(each.quarantine)
            served[each.id] = _of_cluster(settings, each)
        except GraphError as fault:
            # One graph's trouble is not the others': it is left out, and its routes answer that it is not there.
            if settings.require_all_graphs:
                raise
            log("graph put aside", level=logging.ERROR, graph=each.id, reason=str(fault))
    if not served:
        raise InvalidRequestError(f"no graph of the cluster at {root} can be served", code="cluster_no_healthy_graphs")
    return Graphs(served, authority=Authority(not settings.tokens, found.policy))


def _of_cluster(settings: ServerSettings, each: Declared) -> ServedGraph:
    options = OpenOptions(
        cache_bytes=settings.cache_bytes_max,
        durability=settings.durability,
        external_blobs=each.external_blobs.for_servers(),
        embeddings=None if each.provider is None else environment(each.provider),
    )
    queries = stored_queries(each.queries)
    graph = _opened(each.uri, each.id, settings, options)
    authority = Authority(not settings.tokens, each.policy, each.id)
    return ServedGraph(each.id, graph, authority, queries, schema_is_managed=True)


def _one_graph(settings: ServerSettings, store: str) -> Graphs:
    policy = None if settings.policy is None else _policy(settings.policy)
    refuse_ambiguity(settings, has_policy=policy is not None)
    is_open = not settings.tokens
    graph_id = checked_id(settings.graph_id) if settings.graph_id is not None else id_from(store)
    graph = _opened(
        store, graph_id, settings, OpenOptions(durability=settings.durability, cache_bytes=settings.cache_bytes_max)
    )
    served = ServedGraph(graph_id, graph, Authority(is_open, policy, graph_id))
    return Graphs({graph_id: served}, authority=Authority(is_open))


def _opened(address: str, graph_id: str, settings: ServerSettings, options: OpenOptions) -> Graph:
    """A graph, its store counted."""
    store = open_store(address, read_only=settings.read_only, durability=options.durability)
    metered = MeteredStore(store, graph_id, SystemClock())
    return open_graph(metered, read_only=settings.read_only, options=options)


def refuse_ambiguity(settings: ServerSettings, *, has_policy: bool) -> None:
    """Make sure that who may come in was decided by somebody.

    Raises:
        InvalidRequestError: it was not, or a policy speaks of actors that nobody can be.
    """
    if has_policy and not settings.tokens:
        raise InvalidRequestError(
            "there is a policy and there are no bearer tokens, so nobody could be one of its actors: set "
            "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE or OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
        )
    if not settings.tokens and not settings.unauthenticated:
        raise InvalidRequestError(
            "there are no bearer tokens and there is no policy: set OMNIGRAPH_SERVER_BEARER_TOKEN, or say "
            "--unauthenticated to let everybody do everything"
        )


def _policy(file: str) -> Policy:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise InvalidRequestError(f"the policy {file} cannot be read: {fault}") from None
    return Policy.parse(text, kind=Kind.GRAPH)
