"""Load files: `load`, and its deprecated alias `ingest`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import (
    add_branch,
    add_json,
    add_load_engine,
    add_positional_uri,
    add_write_options,
    amount,
    write_options,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.progress import report_progress
from omnigraph.cli.validation import spark_settings

_MODES = ("overwrite", "append", "merge")
_EXAMPLES = """\
  omnigraph load ./library --data books.jsonl --mode append --engine local
  omnigraph load ./library --type Book --data 'books/*.parquet' --mode merge --branch import --from main
  omnigraph load ./library --edge Wrote --from-column author --to-column isbn --data wrote.csv --mode append
  omnigraph load ./library --data books.jsonl --mode append --rejects ./bad --max-rejects 100"""


def _load_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument(
        "--data", metavar="FILE", required=True, action="append", help="a file, folder, glob pattern or URL; repeatable"
    )
    parser.add_argument("--mode", choices=_MODES, required=True, help="how to treat entities that exist already")
    add_branch(parser)
    parser.add_argument("--from", dest="source", metavar="BRANCH", help="create the branch from this one if missing")
    files = parser.add_argument_group("columnar files and bad records")
    files.add_argument("--type", dest="type_name", metavar="TYPE", help="the files hold nodes of this type")
    files.add_argument("--edge", metavar="TYPE", help="the files hold edges of this type")
    files.add_argument("--from-column", metavar="NAME", help="column with the source node of an edge")
    files.add_argument("--to-column", metavar="NAME", help="column with the target node of an edge")
    files.add_argument(
        "--format", choices=("jsonl", "csv", "parquet"), help="format of the files; by their names if omitted"
    )
    files.add_argument("--rejects", metavar="DIR", help="write bad records there, with reasons, and load the others")
    files.add_argument("--max-rejects", metavar="N", type=amount, help="fail with more than N bad records")
    files.add_argument("--dry-run", action="store_true", help="validate everything and write nothing")
    add_write_options(parser)
    add_load_engine(parser)
    add_json(parser)


def _load(context: CommandContext) -> int:
    args = context.args
    context.echo_target()
    if args.mode == "overwrite" and not args.dry_run:
        context.require_consent()
    with context.graph(read_only=False) as graph, report_progress(context) as progress:
        result = graph.load(
            args.data,
            mode=args.mode,
            branch=args.branch or "main",
            from_branch=args.source,
            type_name=args.type_name,
            edge=args.edge,
            from_column=args.from_column,
            to_column=args.to_column,
            format=args.format,
            engine=args.engine,
            rejects=args.rejects,
            max_rejects=args.max_rejects,
            dry_run=args.dry_run,
            actor=context.actor,
            **write_options(args),
            spark=spark_settings(args),
            progress=progress,
        )
        uri = graph.uri
    for warning in result.warnings:
        context.note(f"warning: {warning}")
    nodes, edges = len(result.nodes), len(result.edges)
    verb = "would load" if args.dry_run else "loaded"
    lines = [
        f"{verb} {uri} on branch {result.branch} with {result.mode}: {result.total_entities} entities across "
        f"{nodes} node types and {edges} edge types"
    ]
    if result.branch_created:
        lines.append(f"branch {result.branch} created from {result.base_branch}")
    if result.rejects:
        lines.append(f"{len(result.rejects)} bad records written to {result.rejects_file}")
    return context.show({**result.to_dict(), "base_branch": result.base_branch, "actor_id": context.actor}, *lines)


def _ingest_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--data", metavar="FILE", required=True, help="file of JSON values")
    parser.add_argument("--mode", choices=_MODES, default="merge", help="merge by default")
    add_branch(parser)
    parser.add_argument("--from", dest="source", metavar="BRANCH", default="main", help="main by default")
    add_load_engine(parser)
    add_json(parser)


def _ingest(context: CommandContext) -> int:
    args = context.args
    context.note("warning: `omnigraph ingest` is deprecated; use `omnigraph load` instead")
    context.echo_target()
    if args.mode == "overwrite":
        context.require_consent()
    with context.graph(read_only=False) as graph:
        result = graph.load(
            args.data,
            mode=args.mode,
            branch=args.branch or "main",
            from_branch=args.source,
            strict=False,
            engine=args.engine,
            actor=context.actor,
            spark=spark_settings(args),
        )
        uri = graph.uri
    created = "branch created" if result.branch_created else "branch exists"
    lines = [
        f"ingested {result.total_entities} entities from {uri} into branch {result.branch} from {args.source} with "
        f"{result.mode} ({created})"
    ]
    lines += [f"node type '{name}': {count} entities loaded" for name, count in result.nodes.items()]
    lines += [f"edge type '{name}': {count} entities loaded" for name, count in result.edges.items()]
    if context.actor is not None:
        lines.append(f"actor_id: {context.actor}")
    document = {**result.to_dict(), "base_branch": args.source, "actor_id": context.actor}
    return context.show(document, *lines)


COMMANDS = {
    "load": Command(_load, _load_arguments, _EXAMPLES),
    "ingest": Command(_ingest, _ingest_arguments, "  omnigraph ingest ./library --data books.jsonl"),
}
