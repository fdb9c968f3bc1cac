"""Connect to a graph on a server."""

from urllib.parse import SplitResult, unquote, urlsplit

from omnigraph import limits
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.wire import Wire, http_client, quote_segment, require_seconds
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError, PermissionDeniedError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.transaction.validation import require_optional_text, require_text

_GRAPHS = "/graphs"


def connect(
    url: str,
    *,
    graph: str | None = None,
    token: str | None = None,
    timeout_s: float = limits.CLIENT_ANSWER_S_MAX,
    patience_s: float = limits.CLIENT_PATIENCE_S,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> RemoteGraph:
    """Connect to a graph on a server, with the interface of a graph that is open in this process.

    Args:
        url (str): the server, like `https://host:8080`; or one graph of it, like `https://host/graphs/library`.
        graph (str | None): its name; optional if the server has only one graph, or the address names it.
        token (str | None): the bearer token of the actor.
        timeout_s (float): how long the server may be silent within one answer.
        patience_s (float): for how long to retry a request when the server does not answer, or is overloaded.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of idempotency keys.

    Returns:
        RemoteGraph: close it to end its connections; the server keeps nothing open for it.

    Raises:
        InvalidRequestError: the address or the token is malformed, or the server has several graphs and none was
            named.
        NotFoundError: the server has no graph.
        UnavailableError: the server does not answer.
    """
    clock = clock or SystemClock()
    server, named = server_and_graph(url)
    require_optional_text(graph, "the graph")
    require_seconds(patience_s, "patience_s")
    if graph is not None and named is not None and graph != named:
        raise InvalidRequestError(f"the address names the graph '{named}', and `graph` says '{graph}'")
    wire = Wire(
        http_client(token, timeout_s=timeout_s),
        server,
        clock=clock,
        ids=ids or UlidSource(clock),
        patience_s=patience_s,
    )
    try:
        chosen = graph or named or _only_graph(wire)
    except GraphError:
        wire.close()
        raise
    wire.base = f"{server}{_GRAPHS}/{quote_segment(chosen)}"
    return RemoteGraph(wire)


def server_and_graph(url: str) -> tuple[str, str | None]:
    """Split an address into that of the server and the graph it names, if any.

    Raises:
        InvalidRequestError: it is not a server address.
    """
    parts = _split(url)
    if "@" in parts.netloc:
        # The message leaves out the user info: it is often a secret, and errors are logged.
        raise InvalidRequestError(
            f"the address of the server at {parts.netloc.rpartition('@')[2]} contains a name or a password: leave it "
            "out, and pass a token"
        )
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        shown = url.partition("?")[0].partition("#")[0]
        raise InvalidRequestError(f"'{shown}' is not a server address; use one like https://host:8080")
    server, found, rest = url.rstrip("/").rpartition(f"{_GRAPHS}/")
    if found and rest and "/" not in rest:
        return server, unquote(rest)
    return url.rstrip("/"), None


def _split(url: str) -> SplitResult:
    """Split a URL; raise an `InvalidRequestError` if it is malformed."""
    try:
        parts = urlsplit(require_text(url, "the address of a server"))
        is_valid = url.isprintable() and " " not in url and parts.port != 0
    except ValueError:  # a malformed IPv6 address or port
        is_valid = False
    if not is_valid:
        shown = repr(url).rpartition("@")[2]  # the user info may be a secret
        raise InvalidRequestError(f"{shown} is not a server address; use one like https://host:8080")
    return parts


def graphs_at(
    url: str, *, token: str | None = None, patience_s: float = limits.CLIENT_PATIENCE_S
) -> list[dict[str, str]]:
    """List the graphs of a server.

    Args:
        url: the address of the server.
        token: the bearer token of the actor.
        patience_s: for how long to retry when it does not answer.

    Returns:
        `graph_id` and `uri` of each, in the order of the server.

    Raises:
        InvalidRequestError: it is not a server address.
        PermissionDeniedError: the actor may not list graphs.
    """
    clock = SystemClock()
    server_and_graph(url)
    client = http_client(token, timeout_s=limits.CLIENT_ANSWER_S_MAX)
    with Wire(client, url.rstrip("/"), clock=clock, ids=UlidSource(clock), patience_s=patience_s) as wire:
        return _list_graphs(wire)


def _only_graph(wire: Wire) -> str:
    try:
        found = [graph["graph_id"] for graph in _list_graphs(wire)]
    except PermissionDeniedError:
        # `readyz` names the graphs that the actor may use, without the permission to list them.
        found = sorted(wire.get("readyz")["graphs"])
    if not found:
        raise NotFoundError(f"the server at {wire.base} has no graph", code="graph_not_found")
    if len(found) > 1:
        raise InvalidRequestError(f"the server at {wire.base} has several graphs, name one: {', '.join(found)}")
    return found[0]


def _list_graphs(wire: Wire) -> list[dict[str, str]]:
    return [{key: str(graph[key]) for key in ("graph_id", "uri")} for graph in wire.get("graphs")["graphs"]]
