"""Draw a graph as one HTML file: `viz …`."""

from argparse import ArgumentParser
from collections.abc import Sized
from pathlib import Path
from typing import Protocol

from omnigraph.cli.arguments import (
    add_branch,
    add_branch_or_snapshot,
    add_compared_states,
    add_json,
    add_positional_uri,
    add_query,
    add_uri,
    amount,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import atomic_file
from omnigraph.cli.validation import compared_states, query_params, query_text

_LIMIT = 2_000


def _add_page(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE", default="omnigraph.html", help="HTML file; omnigraph.html by default")
    add_json(parser)


def _add_limit(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=amount, default=_LIMIT, help=f"draw at most N {what}; {_LIMIT} by default"
    )


def _schema_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    _add_page(parser)


def _schema(context: CommandContext) -> int:
    with context.graph() as graph:
        from omnigraph.drawing.schema import drawn  # noqa: PLC0415  (imports lance; help must not: test_startup)

        return _write_page(context, drawn(graph.snapshot(branch=context.args.branch)))


def _query_arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    add_branch_or_snapshot(parser)
    _add_limit(parser, "matches")
    _add_page(parser)


def _query(context: CommandContext) -> int:
    args = context.args
    text, params = query_text(args), query_params(args)
    with context.graph() as graph:
        from omnigraph.drawing.pattern import drawn  # noqa: PLC0415  (imports lance; help must not: test_startup)

        snapshot = graph.snapshot(branch=args.branch, commit=args.snapshot)
        return _write_page(context, drawn(snapshot, text, params, name=args.name, limit=args.limit))


def _diff_arguments(parser: ArgumentParser) -> None:
    add_compared_states(parser)
    add_uri(parser)
    _add_limit(parser, "changes")
    _add_page(parser)


def _diff(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        from omnigraph.drawing.difference import drawn  # noqa: PLC0415  (imports lance; help must not: test_startup)

        older, newer, merge_base = compared_states(args, graph.branches)
        return _write_page(context, drawn(graph, older, newer, limit=args.limit, merge_base=merge_base))


def _history_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    _add_limit(parser, "commits of a branch")
    _add_page(parser)


def _history(context: CommandContext) -> int:
    with context.graph() as graph:
        from omnigraph.drawing.history import drawn  # noqa: PLC0415  (imports lance; help must not: test_startup)

        return _write_page(context, drawn(graph, limit=context.args.limit))


class _Drawing(Protocol):
    """The part of `drawing.Drawing` used here; importing that one imports Lance."""

    @property
    def nodes(self) -> Sized: ...

    @property
    def links(self) -> Sized: ...

    def page(self) -> str: ...


def _write_page(context: CommandContext, drawing: _Drawing) -> int:
    path = Path(context.args.out)
    with atomic_file(path, "the page") as file:
        file.write(drawing.page().encode())
    nodes, links = len(drawing.nodes), len(drawing.links)
    return context.show(
        {"path": str(path), "nodes": nodes, "links": links}, f"drew {nodes:,} nodes and {links:,} links: {path}"
    )


COMMANDS = {
    "viz schema": Command(_schema, _schema_arguments, "  omnigraph viz schema ./library --out schema.html"),
    "viz query": Command(
        _query,
        _query_arguments,
        "  omnigraph viz query --store ./library -e 'query q() { match { $a: Author $a wrote $b } return { $a } }'",
        "Draw the matches of a query pattern: its nodes, and the edges between them.",
    ),
    "viz diff": Command(_diff, _diff_arguments, "  omnigraph viz diff main review --store ./library"),
    "viz history": Command(_history, _history_arguments, "  omnigraph viz history ./library"),
}
