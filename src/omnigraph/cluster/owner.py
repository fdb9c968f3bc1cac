"""Whether a graph is a cluster's matter."""

import re

from omnigraph.cluster import layout
from omnigraph.cluster.ledger import Ledger
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.storage.object_stores.open import open_store

_PLACE = re.compile(rf"(?P<root>.*?)/?{layout.GRAPHS}[^/]+\.omni/?")


def refuse_managed(uri: str, what: str) -> None:
    """Stop what would go past the cluster that a graph belongs to.

    Args:
        uri: of the graph.
        what: is to be done instead.

    Raises:
        InvalidRequestError: the graph lies where a cluster keeps its own.
    """
    found = _PLACE.fullmatch(uri)
    if found is None:
        return
    root = found["root"] or ("/" if uri.startswith("/") else ".")
    try:
        managed = Ledger(open_store(root, read_only=True)).is_begun()
    except GraphError:
        return  # whatever is wrong there is told by what is done next
    if managed:
        raise InvalidRequestError(
            f"{uri} belongs to the cluster at {root}: {what}, then run: omnigraph cluster apply",
            code="cluster_managed",
        )
