"""`omnigraph viz …`."""

from argparse import ArgumentParser
from collections.abc import Sized
from pathlib import Path
from typing import Protocol

from omnigraph.cli.arguments import (
    add_branch,
    add_json,
    add_positional_uri,
    add_query,
    add_uri,
    amount,
    query_params,
    query_text,
)
from omnigraph.cli.call import Call
from omnigraph.cli.changes import add_compared, compared_states
from omnigraph.cli.command import Command
from omnigraph.cli.whole_file import whole_file

_MOST = 2_000


def _add_page(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", default="omnigraph.html", help="the page; omnigraph.html by default")
    add_json(parser)


def _add_limit(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=amount, default=_MOST, help=f"{what} to draw at most; {_MOST} by default"
    )


def _schema_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    _add_page(parser)


def _schema(call: Call) -> int:
    with call.graph() as graph:
        from omnigraph.drawing.schema import drawn  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        return _written(call, drawn(graph.snapshot(branch=call.args.branch)))


def _query_arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    where = parser.add_mutually_exclusive_group()
    add_branch(where)
    where.add_argument("--snapshot", metavar="COMMIT", help="read at this commit instead")
    _add_limit(parser, "matches")
    _add_page(parser)


def _query(call: Call) -> int:
    args = call.args
    text, params = query_text(args), query_params(args)
    with call.graph() as graph:
        from omnigraph.drawing.pattern import drawn  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        snapshot = graph.snapshot(branch=args.branch, commit=args.snapshot)
        return _written(call, drawn(snapshot, text, params, name=args.name, limit=args.limit))


def _diff_arguments(parser: ArgumentParser) -> None:
    add_compared(parser)
    add_uri(parser)
    _add_limit(parser, "changes")
    _add_page(parser)


def _diff(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
        from omnigraph.drawing.difference import drawn  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        older, newer, merge_base = compared_states(args, graph.branches)
        return _written(call, drawn(graph, older, newer, limit=args.limit, merge_base=merge_base))


def _history_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    _add_limit(parser, "commits of a branch")
    _add_page(parser)


def _history(call: Call) -> int:
    with call.graph() as graph:
        from omnigraph.drawing.history import drawn  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        return _written(call, drawn(graph, limit=call.args.limit))


class _Drawing(Protocol):
    """What every drawing has; what draws is imported only where something is drawn."""

    @property
    def nodes(self) -> Sized: ...

    @property
    def links(self) -> Sized: ...

    def page(self) -> str: ...


def _written(call: Call, drawing: _Drawing) -> int:
    path = Path(call.args.out)
    with whole_file(path, "the page") as file:
        file.write(drawing.page().encode())
    nodes, links = len(drawing.nodes), len(drawing.links)
    return call.show(
        {"path": str(path), "nodes": nodes, "links": links}, f"drew {nodes:,} nodes and {links:,} links: {path}"
    )


COMMANDS = {
    "schema": Command(_schema, _schema_arguments, "  omnigraph viz schema ./library --out schema.html"),
    "query": Command(
        _query,
        _query_arguments,
        "  omnigraph viz query --store ./library -e 'query q() { match { $a: Author $a wrote $b } return { $a } }'",
        "Draw what the pattern of a query matches: its nodes, and the edges it goes along.",
    ),
    "diff": Command(_diff, _diff_arguments, "  omnigraph viz diff main review --store ./library"),
    "history": Command(_history, _history_arguments, "  omnigraph viz history ./library"),
}
