"""Where everything of a cluster lies below its storage root, and which names may stand there."""

import re

STATE = "__cluster/state.json"
LOCK = "__cluster/lock.json"
HOLDERS = "__cluster/holders/"
REVISIONS = "__cluster/revisions/"
RESOURCES = "__cluster/resources/"
APPROVALS = "__cluster/approvals/"
RECOVERIES = "__cluster/recoveries/"
GRAPHS = "graphs/"
CONFIG_FILE = "cluster.yaml"
CLUSTER_SCOPE = "cluster"

_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_RESERVED_GRAPHS = frozenset({"policies", CLUSTER_SCOPE})
_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}")
_QUERY_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_REVISION_MOST = 10**12 - 1


def is_graph_id(text: str) -> bool:
    """Whether a graph may be called so: it becomes part of paths and of addresses."""
    return _GRAPH_ID.fullmatch(text) is not None and text not in _RESERVED_GRAPHS


def is_name(text: str) -> bool:
    """Whether a policy or a provider may be called so."""
    return _NAME.fullmatch(text) is not None


def is_query_name(text: str) -> bool:
    """Whether a query may be stored under that name."""
    return _QUERY_NAME.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether it is spelled like a digest of ours."""
    return _DIGEST.fullmatch(text) is not None


def graph_folder(graph: str) -> str:
    """A graph's root, below that of the cluster."""
    return f"{GRAPHS}{graph}.omni"


def graph_uri(root: str, graph: str) -> str:
    """The address of a graph."""
    return f"{root.rstrip('/')}/{graph_folder(graph)}"


def query_payload(graph: str, name: str, digest: str) -> str:
    """The text of a stored query."""
    return f"{RESOURCES}query/{graph}/{name}/{digest}.gq"


def policy_payload(name: str, digest: str) -> str:
    """The text of a policy."""
    return f"{RESOURCES}policy/{name}/{digest}.yaml"


def revision(number: int) -> str:
    """One state of the ledger, named so that a listing gives the newest first."""
    return f"{REVISIONS}{_REVISION_MOST - number:012}.json"


def heartbeat(lock_id: str) -> str:
    """Who holds or wants the lock; written again and again while its process lives."""
    return f"{HOLDERS}{lock_id}.json"


def takeover_claim(lock_id: str) -> str:
    """Who takes the lock away from somebody dead."""
    return f"{HOLDERS}{lock_id}.taken"


def approval(name: str) -> str:
    """An approval."""
    return f"{APPROVALS}{name}.json"


def recovery(name: str) -> str:
    """A note of what is under way."""
    return f"{RECOVERIES}{name}.json"


def storage_path(root: str, path: str) -> str:
    """Where something lies, for messages."""
    return f"{root.rstrip('/')}/{path}"
