"""`omnigraph load`."""

from argparse import ArgumentParser
from typing import Any

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, add_prune_previous, amount
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.progress import reporting
from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.settings import SparkSettings

_MODES = ("overwrite", "append", "merge")
_EXAMPLES = """\
  omnigraph load ./library --data books.jsonl --mode append --engine local
  omnigraph load ./library --type Book --data 'books/*.parquet' --mode merge --branch import --from main
  omnigraph load ./library --edge Wrote --from-column author --to-column isbn --data wrote.csv --mode append
  omnigraph load ./library --data books.jsonl --mode append --rejects ./bad --max-rejects 100"""


_ENGINE = "spark, for any amount; or local, for small files: in this process, without the seconds Spark takes to start"


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument(
        "--data", metavar="FILE", required=True, action="append", help="a file, folder, pattern or address; repeatable"
    )
    parser.add_argument("--mode", choices=_MODES, required=True, help="what becomes of entities that are there already")
    add_branch(parser)
    parser.add_argument("--from", dest="source", metavar="BRANCH", help="make the branch from this one if need be")
    more = parser.add_argument_group("files with columns, and what to do about bad records")
    more.add_argument("--type", dest="type_name", metavar="TYPE", help="the files hold nodes of this type")
    more.add_argument("--edge", metavar="TYPE", help="the files hold edges of this type")
    more.add_argument("--from-column", metavar="NAME", help="the column with the node an edge leaves")
    more.add_argument("--to-column", metavar="NAME", help="the column with the node an edge reaches")
    more.add_argument(
        "--format", choices=("jsonl", "csv", "parquet"), help="what the files are; by their names if not said"
    )
    more.add_argument("--rejects", metavar="DIR", help="put bad records there, with reasons, and load the others")
    more.add_argument("--max-rejects", metavar="N", type=amount, help="how many of them at most")
    more.add_argument("--dry-run", action="store_true", help="check everything and write nothing")
    add_prune_previous(parser)
    add_engine(parser)
    add_json(parser)


def add_engine(parser: ArgumentParser) -> None:
    """Where the work is done."""
    parser.add_argument("--engine", choices=("spark", "local"), default="spark", help=_ENGINE)
    add_spark(parser)


def add_spark(parser: ArgumentParser) -> None:
    """Which Spark."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", metavar="URL", help="a Spark cluster; this machine by default")
    spark.add_argument("--spark-conf", metavar="K=V", action="append", default=[], help="a Spark setting; repeatable")


def spark_settings(call: Call) -> Any:  # noqa: ANN401  (imported only where Spark is used)
    """What was said about Spark; None where nothing was."""
    args = call.args
    if args.master is None and not args.spark_conf:
        return None

    pairs = []
    for each in args.spark_conf:
        key, equals, value = each.partition("=")
        if not equals:
            raise InvalidRequestError(f"--spark-conf takes KEY=VALUE, not '{each}'", code="load_option")
        pairs.append((key, value))
    return SparkSettings(master=args.master, conf=tuple(pairs))


def _run(call: Call) -> int:
    args = call.args
    call.echo_target()
    if args.mode == "overwrite" and not args.dry_run:
        call.consent()
    with call.graph(read_only=False) as graph, reporting(call) as progress:
        done = graph.load(
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
            actor=call.actor,
            prune_previous=args.prune_previous,
            spark=spark_settings(call),
            progress=progress,
        )
        uri = graph.uri
    for warning in done.warnings:
        call.note(f"warning: {warning}")
    nodes, edges = len(done.nodes), len(done.edges)
    verb = "would load" if args.dry_run else "loaded"
    lines = [
        f"{verb} {uri} on branch {done.branch} with {done.mode}: {done.total_entities} entities across "
        f"{nodes} node types and {edges} edge types"
    ]
    if done.branch_created:
        lines.append(f"branch {done.branch} created from {done.base_branch}")
    if done.rejects:
        lines.append(f"{len(done.rejects)} bad records put aside in {done.rejects_file}")
    return call.show({**done.to_dict(), "base_branch": done.base_branch, "actor_id": call.actor}, *lines)


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
