"""Opening what is to be served, and deciding whether a server may start at all."""

from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.open import open as open_graph
from omnigraph.api.options import OpenOptions
from omnigraph.clock import SystemClock
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Kind
from omnigraph.server.authorize import Authority
from omnigraph.server.graphs import Graphs, ServedGraph, checked_id, id_from
from omnigraph.server.metered_store import MeteredStore
from omnigraph.server.settings import ServerSettings
from omnigraph.storage.object_stores.open import open_store


def open_graphs(settings: ServerSettings) -> Graphs:
    """Open everything that is to be served.

    Raises:
        InvalidRequestError: nothing is named, or nobody said who may come in.
        GraphError: a graph that must be served cannot be opened.
    """
    if (settings.store is None) == (settings.cluster is None):
        raise InvalidRequestError("name what to serve: --cluster DIR|URI, or --store URI for one graph")
    return _one_graph(settings, settings.store or "")


def _one_graph(settings: ServerSettings, store: str) -> Graphs:
    policy = None if settings.policy is None else _policy(settings.policy)
    refuse_ambiguity(settings, has_policy=policy is not None)
    is_open = not settings.tokens
    graph_id = checked_id(settings.graph_id) if settings.graph_id is not None else id_from(store)
    graph = _opened(store, graph_id, settings, OpenOptions(durability=settings.durability))
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
