"""From the address of a server to a graph on it."""

from urllib.parse import SplitResult, unquote, urlsplit

from omnigraph import limits
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.wire import Wire, http_client, seconds, segment
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
    """A graph that a server has, with the interface of one that is open in this process.

    Args:
        url (str): the server, like `https://host:8080`; or one graph of it, like `https://host/graphs/library`.
        graph (str | None): which graph; may be left out where the server has one only.
        token (str | None): a bearer token: who asks.
        timeout_s (float): how long the server may be silent within one answer.
        patience_s (float): for how long a request is sent again when the server does not answer, or says to come later.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of idempotency keys.

    Returns:
        RemoteGraph: nothing is held open for it on the server; close it to end its connections.

    Raises:
        InvalidRequestError: the address is none, no request can carry the token, or the server has several graphs and
            none was named.
        NotFoundError: the server has no graph.
        UnavailableError: nobody answers there.
    """
    clock = clock or SystemClock()
    server, named = server_and_graph(url)
    require_optional_text(graph, "the graph")
    seconds(patience_s, "patience_s")
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
    wire.base = f"{server}{_GRAPHS}/{segment(chosen)}"
    return RemoteGraph(wire)


def server_and_graph(url: str) -> tuple[str, str | None]:
    """The address of a server, and the graph that the address names.

    Raises:
        InvalidRequestError: it is no address of a server.
    """
    parts = _split(url)
    if "@" in parts.netloc:
        # Not repeated: what stands before the host is a secret more often than not, and errors go into logs.
        raise InvalidRequestError(
            f"the address of the server at {parts.netloc.rpartition('@')[2]} holds a name or a password: leave it out, "
            "and say who asks with a token"
        )
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        shown = url.partition("?")[0].partition("#")[0]
        raise InvalidRequestError(f"'{shown}' is no address of a server: it is like https://host:8080")
    server, found, rest = url.rstrip("/").rpartition(f"{_GRAPHS}/")
    if found and rest and "/" not in rest:
        return server, unquote(rest)
    return url.rstrip("/"), None


def _split(url: str) -> SplitResult:
    """The parts of an address.

    Raises:
        InvalidRequestError: it has none: it is no text, or nobody could be asked for it.
    """
    try:
        parts = urlsplit(require_text(url, "the address of a server"))
        is_written = url.isprintable() and " " not in url and parts.port != 0
    except ValueError:  # an address within brackets, or a port, that is none
        is_written = False
    if not is_written:
        shown = repr(url).rpartition("@")[2]  # what stands before may be a secret
        raise InvalidRequestError(f"{shown} is no address of a server: it is like https://host:8080")
    return parts


def graphs_at(
    url: str, *, token: str | None = None, patience_s: float = limits.CLIENT_PATIENCE_S
) -> list[dict[str, str]]:
    """The graphs that a server lists.

    Args:
        url (str): the server.
        token (str | None): who asks.
        patience_s (float): for how long to ask again when it does not answer.

    Returns:
        list[dict[str, str]]: of each its `graph_id` and its `uri`, in order.

    Raises:
        InvalidRequestError: the address is none.
        PermissionDeniedError: whoever asks may not see them.
    """
    clock = SystemClock()
    server_and_graph(url)
    client = http_client(token, timeout_s=limits.CLIENT_ANSWER_S_MAX)
    with Wire(client, url.rstrip("/"), clock=clock, ids=UlidSource(clock), patience_s=patience_s) as wire:
        return _listed(wire)


def _only_graph(wire: Wire) -> str:
    try:
        found = [each["graph_id"] for each in _listed(wire)]
    except PermissionDeniedError:
        # Listing is for few; which graphs are ready, a server tells whoever may use them.
        found = sorted(wire.get("readyz")["graphs"])
    if not found:
        raise NotFoundError(f"the server at {wire.base} has no graph", code="graph_not_found")
    if len(found) > 1:
        raise InvalidRequestError(f"the server at {wire.base} has several graphs, name one: {', '.join(found)}")
    return found[0]


def _listed(wire: Wire) -> list[dict[str, str]]:
    return [{key: str(each[key]) for key in ("graph_id", "uri")} for each in wire.get("graphs")["graphs"]]
