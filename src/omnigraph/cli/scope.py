"""Resolve the graph, server or cluster that a command addresses."""

import os
from argparse import Namespace
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.cli.config import Config
from omnigraph.cli.specs import CommandSpec
from omnigraph.cli.validation import HINTS
from omnigraph.errors import InvalidRequestError

_ADDRESSES = {"store": "--store URI", "server": "--server NAME|URL", "cluster": "--cluster DIR|URI"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The address of a graph.

    Attributes:
        kind: "store", "server" or "cluster".
        address: the graph's storage, the server's URL, or the cluster's root.
        graph: the graph of a server or cluster.
    """

    kind: str
    address: str
    graph: str | None = None

    @property
    def is_local(self) -> bool:
        """True if it is storage of this machine."""
        return self.kind == "store" and urlsplit(self.address).scheme in ("", "file", "memory")

    @property
    def shown(self) -> str:
        """The address without secrets, for messages."""
        return without_secrets(self.address) if self.kind == "server" else self.address

    @property
    def access(self) -> str:
        """How the graph is reached, for the line that echoes the target of a write."""
        if self.kind == "server":
            return "served"
        return "direct, local" if self.is_local else "direct, remote"


def resolve(spec: CommandSpec, args: Namespace, config: Config) -> Scope:
    """Resolve the scope: from the one address that is given, else the profile, else the defaults.

    Raises:
        InvalidRequestError: no address is given, or more than one.
    """
    positional = getattr(args, "uri", None)
    ways = {
        "a positional URI": positional,
        "--store": args.global_store,
        "--server": args.global_server,
        "--cluster": args.global_cluster,
    }
    used = [way for way, value in ways.items() if value is not None]
    if len(used) > 1:
        raise InvalidRequestError(f"{used[0]} and {used[1]} are mutually exclusive — pick one way to address the graph")
    if used and not ways[used[0]].strip():
        raise InvalidRequestError(f"{used[0]} is empty: is a variable not set?", code="no_address")
    graph = args.global_graph
    if positional is not None or args.global_store is not None:
        if graph is not None:
            raise InvalidRequestError(
                "--graph selects a graph within a server or cluster scope; a positional URI / --store is already a "
                "single graph"
            )
        return _store_scope(positional if positional is not None else args.global_store)
    if args.global_server is not None:
        return server_scope(args.global_server, graph, config)
    if args.global_cluster is not None:
        return Scope("cluster", config.clusters.get(args.global_cluster, args.global_cluster), graph)
    profile = args.global_profile or os.environ.get("OMNIGRAPH_PROFILE")
    if profile:
        return _profile_scope(spec, profile, graph, config)
    address = os.environ.get("OMNIGRAPH_STORE", "").strip()
    if address and "store" in spec.takes:
        if graph is not None:
            raise InvalidRequestError(
                "--graph selects a graph within a server or cluster scope; OMNIGRAPH_STORE is already a single graph"
            )
        return _store_scope(address)
    defaults = config.defaults
    if "server" in defaults:
        return server_scope(str(defaults["server"]), graph or defaults.get("default_graph"), config)
    if "store" in defaults:
        return _store_scope(str(defaults["store"]))
    what = "graph" if "store" in spec.takes else "server"
    flags = ", ".join(spelled for flag, spelled in _ADDRESSES.items() if flag in spec.takes)
    raise InvalidRequestError(
        f"which {what}? `{spec.name}` needs an address: give {flags} or --profile NAME, or set OMNIGRAPH_STORE "
        f"or defaults in {config.path}",
        code="no_address",
    )


def _profile_scope(spec: CommandSpec, name: str, graph: str | None, config: Config) -> Scope:
    profile = config.profiles.get(name)
    if profile is None:
        raise InvalidRequestError(f"unknown profile '{name}' (not defined under `profiles:` in operator config)")
    graph = graph or profile.get("default_graph")
    if "store" in profile:
        return _store_scope(str(profile["store"]))
    kind = "server" if "server" in profile else "cluster"
    if kind not in spec.takes:
        raise InvalidRequestError(
            f"`{spec.name}` is a {spec.capability} command; the profile '{name}' names a {kind} and does not apply."
            f"{HINTS.get(spec.capability, '')}"
        )
    if kind == "server":
        return server_scope(str(profile["server"]), graph, config)
    root = str(profile["cluster"])
    return Scope("cluster", config.clusters.get(root, root), graph)


def _store_scope(address: str) -> Scope:
    if urlsplit(address).scheme in ("http", "https"):
        raise InvalidRequestError(
            f"a remote graph must be addressed with --server <url> — {address} is not the storage of a graph"
        )
    return Scope("store", address)


def without_secrets(address: str) -> str:
    """Return the URL of a server without user, password, query and fragment."""
    plain = address.partition("?")[0].partition("#")[0]
    scheme, found, rest = plain.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if found else plain.rpartition("@")[2]


def server_scope(name: str, graph: str | None, config: Config) -> Scope:
    """Return the scope of a server, given by its configured name or URL.

    Raises:
        InvalidRequestError: no server is configured under that name.
    """
    if urlsplit(name).scheme in ("http", "https"):
        return Scope("server", name, graph)
    url = config.servers.get(name)
    if url is None:
        raise InvalidRequestError(
            f"unknown server '{without_secrets(name)}' (not defined under `servers:` in {config.path}, and not an "
            "http(s) URL)"
        )
    return Scope("server", url, graph)
