"""The overview of all commands, for `omnigraph --help`."""

from omnigraph.cli.table import COMMANDS, LEGEND, Capability

_LETTERS = {
    Capability.ANY: "g",
    Capability.SERVED: "s",
    Capability.DIRECT: "d",
    Capability.CONTROL: "c",
    Capability.LOCAL: "l",
}
_FLAGS = """\
flags, before or after the command:
  --store URI           a graph's storage: a path, file:// or s3://
  --server NAME|URL     a server, by its configured name or address
  --cluster DIR|URI     a cluster's root
  --graph ID            which graph of a server or cluster
  --profile NAME        a profile of the configuration (else $OMNIGRAPH_PROFILE)
  --as ACTOR            who writes
  --yes                 do not ask before destructive work
  --quiet               do not say on stderr what is written to
  --debug               show the traceback of an error
  -v, --version         the version
  -h, --help            this help; `omnigraph COMMAND --help` for a command's own
"""
_START = """\
to begin:
  omnigraph init mygraph --schema library.pg
  omnigraph load mygraph --data books.jsonl --mode append
  omnigraph query --store mygraph -e 'query q() { match { $b: Book } return { $b.title } }'
"""


def overview() -> str:
    """All commands, with what each works on."""
    shown = [entry for entry in COMMANDS if not entry.hidden]
    width = max(len(entry.name) for entry in shown)
    lines = [f"  {_LETTERS[entry.capability]}  {entry.name:<{width}}  {entry.summary}" for entry in shown]
    legend = [f"  {letter}  {LEGEND[capability]}" for capability, letter in _LETTERS.items()]
    return "\n".join(
        [
            "usage: omnigraph [flags] COMMAND …",
            "",
            "A lakehouse graph database: typed property graphs, versioned and branched as one.",
            "",
            "commands:",
            *lines,
            "",
            "the letter says what a command works on:",
            *legend,
            "",
            _FLAGS,
            _START,
        ]
    )


def group_overview(group: str) -> str:
    """The commands of one group."""
    shown = [entry for entry in COMMANDS if entry.path[0] == group]
    width = max(len(entry.name) for entry in shown)
    lines = [f"  {entry.name:<{width}}  {entry.summary}" for entry in shown]
    return "\n".join([f"usage: omnigraph {group} COMMAND …", "", "commands:", *lines, ""])
