"""Paths below the storage root of a cluster, and the names allowed in them."""

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
    """True if the text is a valid graph id, usable in paths and addresses."""
    return _GRAPH_ID.fullmatch(text) is not None and text not in _RESERVED_GRAPHS


def is_name(text: str) -> bool:
    """True if the text is a valid name of a policy or provider."""
    return _NAME.fullmatch(text) is not None


def is_query_name(text: str) -> bool:
    """True if the text is a valid name of a stored query."""
    return _QUERY_NAME.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """True if the text has the form of a SHA-256 digest."""
    return _DIGEST.fullmatch(text) is not None


def graph_folder(graph: str) -> str:
    """Return the path of a graph below the storage root."""
    return f"{GRAPHS}{graph}.omni"


def graph_uri(root: str, graph: str) -> str:
    """Return the address of a graph."""
    return f"{root.rstrip('/')}/{graph_folder(graph)}"


def query_payload(graph: str, name: str, digest: str) -> str:
    """Return the path of a stored query's text."""
    return f"{RESOURCES}query/{graph}/{name}/{digest}.gq"


def policy_payload(name: str, digest: str) -> str:
    """Return the path of a policy's text."""
    return f"{RESOURCES}policy/{name}/{digest}.yaml"


def revision(number: int) -> str:
    """Return the path of a ledger revision; a listing gives the newest first."""
    return f"{REVISIONS}{_REVISION_MOST - number:012}.json"


def heartbeat(lock_id: str) -> str:
    """Return the path of the heartbeat of a process that holds or wants the lock."""
    return f"{HOLDERS}{lock_id}.json"


def takeover_claim(lock_id: str) -> str:
    """Return the path of the claim to a dead process's lock."""
    return f"{HOLDERS}{lock_id}.taken"


def approval(name: str) -> str:
    """Return the path of an approval."""
    return f"{APPROVALS}{name}.json"


def recovery(name: str) -> str:
    """Return the path of a sidecar."""
    return f"{RECOVERIES}{name}.json"


def storage_path(root: str, path: str) -> str:
    """Return the full address of a path, for messages."""
    return f"{root.rstrip('/')}/{path}"
