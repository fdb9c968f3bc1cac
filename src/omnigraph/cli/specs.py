"""Every command: its name, what it does, which ways of addressing a graph it takes, and the module that runs it.

A table of values, so that `omnigraph --help` imports no command and running one imports no other.
"""

from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    """What a command works on, in the words of an error message."""

    ANY = "data"
    SERVED = "served"
    DIRECT = "direct (storage-native)"
    CONTROL = "cluster control"
    LOCAL = "local"


# What the letters in front of the commands mean, for `omnigraph --help`.
LEGEND = {
    Capability.ANY: "a graph, on storage or served",
    Capability.SERVED: "a server",
    Capability.DIRECT: "a graph on storage",
    Capability.CONTROL: "a cluster's configuration",
    Capability.LOCAL: "this machine only",
}

_ANY = frozenset({"server", "graph", "store", "profile"})
_WRITE = _ANY | {"as", "yes", "quiet"}
_DIRECT = frozenset({"store", "profile"})
_UPKEEP = _DIRECT | {"cluster", "graph", "yes", "quiet"}
_CLUSTER = frozenset({"cluster", "graph", "profile"})
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command.

    Attributes:
        name: the words to type, like `branch create`.
        summary: what it does, in one line.
        capability: what it works on.
        takes: the global flags that apply to it.
        module: the module of `omnigraph.cli.commands` that runs it.
        hidden: whether overviews leave it out.
    """

    name: str
    summary: str
    capability: Capability
    takes: frozenset[str]
    module: str
    hidden: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        """The words of its name."""
        return tuple(self.name.split())


_Row = tuple[str, str, Capability, frozenset[str]]


def _specs(module: str, *rows: _Row, hidden: bool = False) -> tuple[CommandSpec, ...]:
    return tuple(CommandSpec(*row, module, hidden) for row in rows)


COMMANDS = (
    *_specs("schema", ("init", "create a graph from a schema", Capability.DIRECT, frozenset({"quiet"}))),
    *_specs("load", ("load", "load files", Capability.ANY, _WRITE)),
    *_specs("load", ("ingest", "deprecated alias of load", Capability.ANY, _WRITE), hidden=True),
    *_specs(
        "export",
        ("export", "write a graph to files", Capability.ANY, _ANY | {"as"}),
        ("blob get", "read the bytes of a blob", Capability.ANY, _ANY),
        ("blob stat", "show the size and location of a blob", Capability.ANY, _ANY),
    ),
    *_specs(
        "query",
        ("query", "run a query", Capability.ANY, _ANY),
        ("mutate", "change the graph with a mutation", Capability.ANY, _WRITE),
        ("explain", "show the plan of a query", Capability.ANY, _ANY),
    ),
    *_specs("queries", ("lint", "check queries against a schema", Capability.DIRECT, _DIRECT | {"cluster", "graph"})),
    *_specs(
        "branch",
        ("branch create", "create a branch", Capability.ANY, _WRITE),
        ("branch list", "list the branches", Capability.ANY, _WRITE),
        ("branch delete", "delete a branch", Capability.ANY, _WRITE),
        ("branch merge", "merge one branch into another", Capability.ANY, _WRITE),
    ),
    *_specs("history", ("diff", "show the differences between two states", Capability.ANY, _ANY)),
    *_specs(
        "branch",
        ("tag create", "name a commit", Capability.ANY, _WRITE),
        ("tag list", "list the tags", Capability.ANY, _WRITE),
        ("tag show", "show the commit of a tag", Capability.ANY, _WRITE),
        ("tag delete", "delete a tag; its commit stays", Capability.ANY, _WRITE),
    ),
    *_specs(
        "history",
        ("commit list", "list the commits of a branch", Capability.ANY, _ANY),
        ("commit show", "show one commit", Capability.ANY, _ANY),
        ("commit changes", "show the entities that a commit changed", Capability.ANY, _ANY),
        ("changes poll", "show the changes since a cursor", Capability.ANY, _ANY),
        ("changes baseline", "export a state, with the cursor to poll from", Capability.ANY, _ANY),
    ),
    *_specs(
        "schema",
        ("snapshot", "show the dataset versions and entity counts of a branch", Capability.ANY, _ANY | {"as"}),
        ("schema show", "show the schema of a graph", Capability.ANY, _WRITE),
        ("schema plan", "show the steps of a schema change", Capability.DIRECT, _DIRECT),
        ("schema apply", "change the schema of a graph", Capability.ANY, _WRITE),
    ),
    *_specs(
        "history",
        ("revert", "undo a commit, or a range of commits", Capability.ANY, _WRITE),
        ("blame", "show which commit set each property of an entity", Capability.ANY, _ANY),
        ("log", "show the commits of a branch, or the history of one entity", Capability.ANY, _ANY),
    ),
    *_specs("schema", ("stats", "show counts and sizes by type", Capability.ANY, _ANY)),
    *_specs(
        "viz",
        ("viz schema", "draw the schema, as one HTML file", Capability.DIRECT, _DIRECT),
        ("viz query", "draw the matches of a query pattern", Capability.DIRECT, _DIRECT),
        ("viz diff", "draw the differences between two states", Capability.DIRECT, _DIRECT),
        ("viz history", "draw the commits of all branches", Capability.DIRECT, _DIRECT),
    ),
    *_specs(
        "spark",
        ("analytics", "run an algorithm over the whole graph, on Spark", Capability.DIRECT, _DIRECT | {"as"}),
        ("spark-sql", "run SQL over a graph, on Spark", Capability.DIRECT, _DIRECT),
    ),
    *_specs(
        "maintenance",
        ("optimize", "compact tables and build indexes", Capability.DIRECT, _UPKEEP),
        ("prune", "drop old commits from history", Capability.DIRECT, _UPKEEP | {"as"}),
        ("sweep", "delete unreferenced files", Capability.DIRECT, _UPKEEP),
        ("cleanup", "prune and sweep", Capability.DIRECT, _UPKEEP),
        ("verify", "check that no data is missing or damaged", Capability.DIRECT, _UPKEEP),
        ("repair", "quarantine damaged files", Capability.DIRECT, _UPKEEP),
        ("maintain", "optimize, prune, sweep and verify at regular intervals", Capability.DIRECT, _UPKEEP),
    ),
    *_specs(
        "interactive",
        ("shell", "query a graph interactively", Capability.DIRECT, _DIRECT | {"as"}),
        ("mcp", "serve a graph to an agent, as MCP tools", Capability.ANY, _ANY | {"as"}),
    ),
    *_specs(
        "cluster",
        ("cluster validate", "check a cluster's configuration", Capability.CONTROL, _NONE),
        ("cluster import", "create a cluster's ledger", Capability.CONTROL, _NONE),
        ("cluster plan", "show what applying the configuration would change", Capability.CONTROL, _NONE),
        ("cluster apply", "apply the configuration to a cluster", Capability.CONTROL, frozenset({"as"})),
        ("cluster status", "show the state of a cluster", Capability.CONTROL, _NONE),
        ("cluster refresh", "update the ledger from a cluster's graphs", Capability.CONTROL, _NONE),
        ("cluster approve", "approve an irreversible change", Capability.CONTROL, frozenset({"as"})),
        ("cluster force-unlock", "release the lock of a process that died", Capability.CONTROL, _NONE),
        ("policy validate", "check a cluster's policies", Capability.CONTROL, _CLUSTER),
        ("policy test", "test policies against expected decisions", Capability.CONTROL, _CLUSTER),
        ("policy explain", "explain why an action is allowed or denied", Capability.CONTROL, _CLUSTER),
    ),
    *_specs(
        "queries",
        ("queries validate", "check stored queries against the schema", Capability.CONTROL, _CLUSTER),
        ("queries list", "list the stored queries of a graph", Capability.CONTROL, _CLUSTER),
    ),
    *_specs("interactive", ("demo", "tour the features with a sample graph", Capability.LOCAL, _NONE)),
    *_specs(
        "operator", ("graphs list", "list the graphs of a server", Capability.SERVED, frozenset({"server", "profile"}))
    ),
    *_specs("query", ("alias", "run a stored query by its configured alias", Capability.LOCAL, _NONE)),
    *_specs("embed", ("embed", "compute embeddings for the records of a file", Capability.LOCAL, _NONE)),
    *_specs(
        "operator",
        ("login", "store the token of a server", Capability.LOCAL, _NONE),
        ("logout", "delete the token of a server", Capability.LOCAL, _NONE),
        ("profile list", "list the configured profiles", Capability.LOCAL, _NONE),
        ("profile show", "show one profile", Capability.LOCAL, _NONE),
    ),
    *_specs(
        "token",
        ("token create", "make a bearer token for an actor of a server", Capability.LOCAL, _NONE),
        ("token list", "list the actors with tokens", Capability.LOCAL, _NONE),
        ("token revoke", "revoke the token of an actor, without a restart of the server", Capability.LOCAL, _NONE),
    ),
    *_specs("completion", ("completion", "print a completion script for a shell", Capability.LOCAL, _NONE)),
    *_specs("operator", ("version", "show the version of this program", Capability.LOCAL, _NONE)),
)

# The commands that most people need, first in the overview.
COMMON = (
    "init",
    "load",
    "query",
    "mutate",
    "schema apply",
    "branch create",
    "branch merge",
    "diff",
    "log",
    "shell",
)
# The groups of the overview, each with the first words of its commands.
TOPICS = {
    "data": "init load export blob query mutate explain lint snapshot schema stats viz analytics spark-sql embed shell",
    "history": "branch tag commit changes diff log blame revert",
    "upkeep": "optimize prune sweep cleanup verify repair recovery maintain",
    "clusters, servers and agents": "cluster policy queries graphs alias mcp token",
    "this machine": "demo login logout profile completion version",
}

BY_NAME = {spec.name: spec for spec in COMMANDS}
GROUPS = {spec.path[0] for spec in COMMANDS if len(spec.path) > 1}

# Other spellings of a command, which work without a warning.
ALIASES = {"schema get": "schema show"}
# Old spellings, which work with a warning.
DEPRECATED = {"read": "query", "change": "mutate", "check": "lint", "query lint": "lint", "query check": "lint"}
