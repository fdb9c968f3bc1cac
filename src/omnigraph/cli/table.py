"""Every command there is: where it lives, what it is for, and which ways of addressing a graph it takes.

A table, so that `omnigraph --help` imports no command and a command imports no other.
"""

from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    """What kind of command it is, in the words of an error message."""

    ANY = "data"
    SERVED = "served"
    DIRECT = "direct (storage-native)"
    CONTROL = "cluster control"
    LOCAL = "local"


# What the letters in front of the commands mean, for the overview.
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One command.

    Attributes:
        path: its words, like `branch create`.
        summary: what it is for, in one line.
        capability: what it works on.
        takes: the global flags it takes.
        module: the module of `omnigraph.cli.commands` it is in.
        hidden: whether overviews leave it out.
    """

    path: tuple[str, ...]
    summary: str
    capability: Capability
    takes: frozenset[str]
    module: str
    hidden: bool = False

    @property
    def name(self) -> str:
        """Its words."""
        return " ".join(self.path)


def _entry(words: str, summary: str, capability: Capability, takes: frozenset[str], *, hidden: bool = False) -> Entry:
    path = tuple(words.split())
    return Entry(path, summary, capability, takes, path[0].replace("-", "_"), hidden)


COMMANDS = (
    _entry("init", "make a graph from a schema", Capability.DIRECT, frozenset({"quiet"})),
    _entry("load", "load files", Capability.ANY, _WRITE),
    _entry("ingest", "load files, as scripts of old call it", Capability.ANY, _WRITE, hidden=True),
    _entry("export", "write a graph to files", Capability.ANY, _ANY | {"as"}),
    _entry("blob get", "the bytes of a blob", Capability.ANY, _ANY),
    _entry("blob stat", "the size of a blob, and where it lies", Capability.ANY, _ANY),
    _entry("query", "answer a query", Capability.ANY, _ANY),
    _entry("mutate", "change the graph with a query", Capability.ANY, _WRITE),
    _entry("explain", "show how a query would be carried out", Capability.ANY, _ANY),
    _entry("lint", "check queries against a schema", Capability.DIRECT, _DIRECT | {"cluster", "graph"}),
    _entry("branch create", "make a branch", Capability.ANY, _WRITE),
    _entry("branch list", "the branches there are", Capability.ANY, _WRITE),
    _entry("branch delete", "delete a branch", Capability.ANY, _WRITE),
    _entry("branch merge", "bring one branch into another", Capability.ANY, _WRITE),
    _entry("diff", "what lies between two states", Capability.ANY, _ANY),
    _entry("tag create", "name a commit", Capability.ANY, _WRITE),
    _entry("tag list", "the tags there are", Capability.ANY, _WRITE),
    _entry("tag show", "what a tag names", Capability.ANY, _WRITE),
    _entry("tag delete", "take a name back", Capability.ANY, _WRITE),
    _entry("commit list", "the commits of a branch", Capability.ANY, _ANY),
    _entry("commit show", "one commit", Capability.ANY, _ANY),
    _entry("commit changes", "what a commit did to which entities", Capability.ANY, _ANY),
    _entry("changes poll", "what happened since a cursor", Capability.ANY, _ANY),
    _entry("changes baseline", "a whole state, and the cursor to go on from it", Capability.ANY, _ANY),
    _entry("snapshot", "what a branch holds, type by type", Capability.ANY, _ANY | {"as"}),
    _entry("schema show", "the schema of a graph", Capability.ANY, _WRITE),
    _entry("schema plan", "what applying a schema would do", Capability.DIRECT, _DIRECT),
    _entry("schema apply", "give a graph another schema", Capability.ANY, _WRITE),
    _entry("revert", "undo a commit, or a range of them", Capability.ANY, _WRITE),
    _entry("blame", "which commit set each property of an entity", Capability.ANY, _ANY),
    _entry("log", "what happened to one entity", Capability.ANY, _ANY),
    _entry("stats", "how much there is of what", Capability.ANY, _ANY),
    _entry("viz schema", "draw the schema, as one HTML file", Capability.DIRECT, _DIRECT),
    _entry("viz query", "draw what a query's pattern matches", Capability.DIRECT, _DIRECT),
    _entry("viz diff", "draw what lies between two states", Capability.DIRECT, _DIRECT),
    _entry("viz history", "draw the commits of all branches", Capability.DIRECT, _DIRECT),
    _entry("analytics", "algorithms over the whole graph, on Spark", Capability.DIRECT, _DIRECT | {"as"}),
    _entry("spark-sql", "SQL over a graph, on Spark", Capability.DIRECT, _DIRECT),
    _entry("optimize", "compact tables and build indexes", Capability.DIRECT, _UPKEEP),
    _entry("prune", "show old commits no more", Capability.DIRECT, _UPKEEP | {"as"}),
    _entry("sweep", "delete the files nothing needs", Capability.DIRECT, _UPKEEP),
    _entry("cleanup", "prune and sweep", Capability.DIRECT, _UPKEEP),
    _entry("verify", "check that everything is there", Capability.DIRECT, _UPKEEP),
    _entry("repair", "put aside what is damaged", Capability.DIRECT, _UPKEEP),
    _entry("maintain", "optimize, prune, sweep and verify, again and again", Capability.DIRECT, _UPKEEP),
    _entry("shell", "talk to a graph", Capability.DIRECT, _DIRECT | {"as"}),
    _entry("mcp", "offer a graph to an agent", Capability.ANY, _ANY | {"as"}),
    _entry("cluster validate", "check a cluster's configuration", Capability.CONTROL, frozenset()),
    _entry("cluster import", "begin a cluster's ledger", Capability.CONTROL, frozenset()),
    _entry("cluster plan", "what applying the configuration would do", Capability.CONTROL, frozenset()),
    _entry("cluster apply", "make a cluster what its configuration says", Capability.CONTROL, frozenset({"as"})),
    _entry("cluster status", "how a cluster stands", Capability.CONTROL, frozenset()),
    _entry("cluster refresh", "look at a cluster's graphs again", Capability.CONTROL, frozenset()),
    _entry("cluster approve", "agree to what cannot be undone", Capability.CONTROL, frozenset({"as"})),
    _entry("cluster force-unlock", "take the lock from somebody dead", Capability.CONTROL, frozenset()),
    _entry("policy validate", "check a cluster's policies", Capability.CONTROL, _CLUSTER),
    _entry("policy test", "try policies against expected decisions", Capability.CONTROL, _CLUSTER),
    _entry("policy explain", "why somebody may do something, or not", Capability.CONTROL, _CLUSTER),
    _entry("queries validate", "check stored queries against the schema", Capability.CONTROL, _CLUSTER),
    _entry("queries list", "the stored queries of a graph", Capability.CONTROL, _CLUSTER),
    _entry("demo", "a tour with a sample graph", Capability.LOCAL, frozenset()),
    _entry("graphs list", "the graphs of a server", Capability.SERVED, frozenset({"server", "profile"})),
    _entry("alias", "call a stored query by the operator's own name for it", Capability.LOCAL, frozenset()),
    _entry("embed", "put vectors into a file of records", Capability.LOCAL, frozenset()),
    _entry("login", "remember the token of a server", Capability.LOCAL, frozenset()),
    _entry("logout", "forget the token of a server", Capability.LOCAL, frozenset()),
    _entry("profile list", "the profiles of the configuration", Capability.LOCAL, frozenset()),
    _entry("profile show", "what a profile stands for", Capability.LOCAL, frozenset()),
    _entry("completion", "completion of words, for a shell", Capability.LOCAL, frozenset()),
    _entry("version", "the version of this program", Capability.LOCAL, frozenset()),
)

BY_PATH = {entry.path: entry for entry in COMMANDS}
GROUPS = {entry.path[0] for entry in COMMANDS if len(entry.path) > 1}

ALIASES = {("read",): ("query",), ("change",): ("mutate",), ("schema", "get"): ("schema", "show")}
# Old spellings that still work and say so: what was typed, what to type.
DEPRECATED = {
    ("read",): ("query",),
    ("change",): ("mutate",),
    ("check",): ("lint",),
    ("query", "lint"): ("lint",),
    ("query", "check"): ("lint",),
}
