"""Which graph a command is about."""

import os
from argparse import Namespace
from dataclasses import dataclass
from urllib.parse import urlsplit

from omnigraph.cli.config import Config
from omnigraph.cli.table import Capability, Entry
from omnigraph.errors import InvalidRequestError

# What each flag means, for the message to somebody who gives it to a command it does not concern.
_MEANINGS = {
    "server": "--server addresses a served graph",
    "cluster": "--cluster addresses a cluster",
    "graph": "--graph selects a graph within a server or cluster scope",
    "store": "--store addresses one graph's storage",
    "as": "--as sets the actor of a direct write",
    "profile": "--profile selects a configured scope",
}
_ADDRESSES = {"store": "--store URI", "server": "--server NAME|URL", "cluster": "--cluster DIR|URI"}
_HINTS = {
    Capability.DIRECT: " Address the graph's storage with a URI or --store.",
    Capability.SERVED: " Address a server with --server.",
    Capability.CONTROL: " Address the cluster's folder with --config.",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a graph is.

    Attributes:
        kind: "store", "server" or "cluster".
        address: its storage, the server's address, or the cluster's root.
        graph: which graph of a server or cluster.
    """

    kind: str
    address: str
    graph: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.kind == "store" and urlsplit(self.address).scheme in ("", "file", "memory")

    @property
    def shown(self) -> str:
        """Its address as people may see it."""
        return without_secrets(self.address) if self.kind == "server" else self.address

    @property
    def how(self) -> str:
        """How it is reached, for the line that says what is written to."""
        if self.kind == "server":
            return "served"
        return "direct, local" if self.is_local else "direct, remote"


def refuse_foreign_flags(entry: Entry, given: Namespace) -> None:
    """Stop a command that was given a flag of another kind of command.

    Raises:
        InvalidRequestError: it was.
    """
    for flag, meaning in _MEANINGS.items():
        if getattr(given, f"global_{flag}") is not None and flag not in entry.takes:
            hint = _HINTS.get(entry.capability, "") if flag != "as" else ""
            raise InvalidRequestError(
                f"`{entry.name}` is a {entry.capability} command; {meaning} and does not apply.{hint}"
            )


def resolve(entry: Entry, given: Namespace, config: Config) -> Scope:
    """The graph a command is about: the one way of addressing that was given, else the profile, else the defaults.

    Raises:
        InvalidRequestError: none was given, or two.
    """
    positional = getattr(given, "uri", None)
    ways = {
        "a positional URI": positional,
        "--store": given.global_store,
        "--server": given.global_server,
        "--cluster": given.global_cluster,
    }
    used = [way for way, value in ways.items() if value is not None]
    if len(used) > 1:
        raise InvalidRequestError(f"{used[0]} and {used[1]} are mutually exclusive — pick one way to address the graph")
    if used and not ways[used[0]].strip():
        raise InvalidRequestError(f"{used[0]} is empty: is it a variable that is not set?", code="no_address")
    graph = given.global_graph
    if positional is not None or given.global_store is not None:
        if graph is not None:
            raise InvalidRequestError(
                "--graph selects a graph within a server or cluster scope; a positional URI / --store is already a "
                "single graph"
            )
        return _stored(positional if positional is not None else given.global_store)
    if given.global_server is not None:
        return served_at(given.global_server, graph, config)
    if given.global_cluster is not None:
        return Scope("cluster", config.clusters.get(given.global_cluster, given.global_cluster), graph)
    profile = given.global_profile or os.environ.get("OMNIGRAPH_PROFILE")
    if profile:
        return _of_profile(entry, profile, graph, config)
    defaults = config.defaults
    if "server" in defaults:
        return served_at(str(defaults["server"]), graph or defaults.get("default_graph"), config)
    if "store" in defaults:
        return _stored(str(defaults["store"]))
    what = "graph" if "store" in entry.takes else "server"
    flags = ", ".join(spelled for flag, spelled in _ADDRESSES.items() if flag in entry.takes)
    raise InvalidRequestError(
        f"which {what}? `{entry.name}` needs an address: give {flags} or --profile NAME, or set defaults in "
        f"{config.path}",
        code="no_address",
    )


def _of_profile(entry: Entry, name: str, graph: str | None, config: Config) -> Scope:
    profile = config.profiles.get(name)
    if profile is None:
        raise InvalidRequestError(f"unknown profile '{name}' (not defined under `profiles:` in operator config)")
    graph = graph or profile.get("default_graph")
    if "store" in profile:
        return _stored(str(profile["store"]))
    kind = "server" if "server" in profile else "cluster"
    if kind not in entry.takes:
        raise InvalidRequestError(
            f"`{entry.name}` is a {entry.capability} command; the profile '{name}' names a {kind} and does not apply."
            f"{_HINTS.get(entry.capability, '')}"
        )
    if kind == "server":
        return served_at(str(profile["server"]), graph, config)
    root = str(profile["cluster"])
    return Scope("cluster", config.clusters.get(root, root), graph)


def _stored(address: str) -> Scope:
    if urlsplit(address).scheme in ("http", "https"):
        raise InvalidRequestError(
            f"a remote graph must be addressed with --server <url> — {address} is no storage of a graph"
        )
    return Scope("store", address)


def without_secrets(address: str) -> str:
    """The address of a server as it may be shown: without a name and a password, and without what follows the path."""
    plain = address.partition("?")[0].partition("#")[0]
    scheme, found, rest = plain.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if found else plain.rpartition("@")[2]


def served_at(name: str, graph: str | None, config: Config) -> Scope:
    """A graph of a server that is named by the configuration, or by its address.

    Raises:
        InvalidRequestError: there is no such server.
    """
    if urlsplit(name).scheme in ("http", "https"):
        return Scope("server", name, graph)
    url = config.servers.get(name)
    if url is None:
        raise InvalidRequestError(
            f"unknown server '{without_secrets(name)}' (not defined under `servers:` in {config.path}, and no http(s) "
            "address)"
        )
    return Scope("server", url, graph)
