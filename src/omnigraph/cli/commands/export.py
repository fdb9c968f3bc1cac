"""Write a graph, or one blob of it, to files: `export`, `blob …`."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from omnigraph.cli.arguments import (
    add_branch,
    add_branch_or_snapshot,
    add_earlier_state,
    add_entity,
    add_json,
    add_positional_uri,
    add_uri,
    amount,
    selected_point,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import atomic_file
from omnigraph.cli.validation import check_export

_EXPORT_EXAMPLES = """\
  omnigraph export ./library > library.jsonl
  omnigraph export ./library --type Book --format parquet --out ./books
  omnigraph export ./library --files 8 --out ./parts"""
_GET_EXAMPLES = """\
  omnigraph blob get node Book 0-1 cover --store ./library --out cover.png
  omnigraph blob get node Book 0-1 cover --store ./library --length 8 | xxd"""


def _export_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--commit", metavar="ID", help="export this commit instead")
    parser.add_argument("--tag", metavar="TAG", help="export the commit of this tag instead")
    add_earlier_state(parser)
    parser.add_argument("--type", metavar="TYPE", action="append", help="only this type; repeatable")
    parser.add_argument(
        "--format", choices=("jsonl", "parquet", "csv", "graphml"), default="jsonl", help="jsonl by default"
    )
    parser.add_argument("--out", metavar="PATH", help="a file or folder; stdout by default")
    parser.add_argument(
        "--files", metavar="N", type=amount, help="up to N files for each type, written in parallel on Spark"
    )
    add_json(parser, help="with --out: print what was written as a JSON document")
    parser.add_argument("--jsonl", action="store_true", help=SUPPRESS)


def _export(context: CommandContext) -> int:
    args = context.args
    point = selected_point(args)
    check_export(args)
    with context.graph() as graph:
        if args.out is None:
            graph.export(context.stdout.buffer, format=args.format, types=args.type, **point)
            return 0
        result = graph.export(args.out, format=args.format, types=args.type, files=args.files, **point)
    lines = [f"{key}: {count} entities" for key, count in result.rows.items()]
    return context.show(
        asdict(result), *lines, *(f"wrote {file}" for file in result.files), f"at commit {result.commit}"
    )


def _blob_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("entity", choices=("node", "edge"), metavar="ENTITY", help="node or edge")
    add_entity(parser)
    parser.add_argument("property", metavar="PROPERTY", help="property that holds the blob")
    add_branch_or_snapshot(parser)
    add_uri(parser)


def _get_arguments(parser: ArgumentParser) -> None:
    _blob_arguments(parser)
    parser.add_argument("--offset", metavar="N", type=amount, default=0, help="skip N bytes")
    parser.add_argument("--length", metavar="N", type=amount, help="read at most N bytes; all by default")
    parser.add_argument("--out", metavar="PATH", help="a file; stdout by default")


def _get(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        selector, point = _selected_blob(args)
        chunks = graph.blob(*selector, **point).stream(args.offset, args.length)
        count = 0
        with _destination(context) as file:
            for chunk in chunks:
                file.write(chunk)
                count += len(chunk)
    if args.out is not None:
        context.print(f"wrote {count} bytes: {args.out}")
    return 0


def _stat_arguments(parser: ArgumentParser) -> None:
    _blob_arguments(parser)
    add_json(parser)


def _stat(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        selector, point = _selected_blob(args)
        blob = graph.blob(*selector, **point)
        details = blob.to_dict()
    state = {"snapshot": args.snapshot} if args.snapshot is not None else {"branch": args.branch or "main"}
    target = {**state, "resolved_snapshot": blob.commit}
    entity = details.pop("selector")
    lines = [f"{key}: {value}" for part in (entity, details, target) for key, value in part.items()]
    return context.show({"selector": entity, **details, "target": target}, *lines)


def _selected_blob(args: Namespace) -> tuple[tuple[str, str, str, str], dict[str, Any]]:
    """Return the positional and keyword arguments of `Graph.blob`."""
    return (args.entity, args.type, args.id, args.property), {"branch": args.branch, "commit": args.snapshot}


@contextmanager
def _destination(context: CommandContext) -> Iterator[IO[bytes]]:
    if context.args.out is None:
        yield context.stdout.buffer
    else:
        with atomic_file(Path(context.args.out), "the blob") as file:
            yield file


COMMANDS = {
    "export": Command(_export, _export_arguments, _EXPORT_EXAMPLES),
    "blob get": Command(_get, _get_arguments, _GET_EXAMPLES),
    "blob stat": Command(_stat, _stat_arguments, "  omnigraph blob stat node Book 0-1 cover --store ./library"),
}
