"""`omnigraph analytics`."""

from argparse import ArgumentParser
from typing import Any

from omnigraph.cli import render
from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.commands.load import add_spark, spark_settings
from omnigraph.errors import InvalidRequestError

ALGORITHMS = (
    "degrees",
    "pagerank",
    "connected-components",
    "label-propagation",
    "triangle-count",
    "k-core",
    "shortest-paths",
)
_EXAMPLES = """\
  omnigraph analytics pagerank ./library --top 10
  omnigraph analytics pagerank ./library --write rank
  omnigraph analytics shortest-paths ./library --source 'Author:Le Guin'"""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("algorithm", choices=ALGORITHMS, metavar="ALGORITHM", help=", ".join(ALGORITHMS))
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--edge", metavar="TYPE", action="append", help="only edges of this type; repeatable")
    parser.add_argument(
        "--source", metavar="TYPE:ID", action="append", default=[], help="of shortest paths; repeatable"
    )
    parser.add_argument("--top", metavar="N", type=amount, default=20, help="how many to show; 20 by default")
    parser.add_argument("--write", metavar="PROPERTY", help="write the answers into this property, as one commit")
    add_spark(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    with call.graph(read_only=args.write is None) as graph:
        graph.spark.session(spark_settings(call))
        work = graph.spark.analytics(edges=args.edge, branch=args.branch)
        answers = _asked(work, args)
        value = "degree" if args.algorithm == "degrees" else "value"
        if args.write is not None:
            done = answers.write_back({value: args.write}, actor=call.actor)
            return call.show(
                {"property": args.write, "entities": done.total_entities, "commit": done.commit},
                f"wrote {args.write} of {done.total_entities} entities: {done.commit}",
            )
        frame = answers.frame
        columns = list(frame.columns)
        rows = [row.asDict() for row in frame.orderBy(frame[value].desc(), "type", "id").limit(args.top).collect()]
    texts = [[render.cell(row[name]) for name in columns] for row in rows]
    return call.show({"columns": columns, "rows": rows}, *render.table(columns, texts))


def _asked(work: Any, args: Any) -> Any:  # noqa: ANN401  (Spark's, and argparse's)
    if args.algorithm != "shortest-paths":
        return getattr(work, args.algorithm.replace("-", "_"))()
    sources = []
    for each in args.source:
        type_name, colon, entity = each.partition(":")
        if not colon:
            raise InvalidRequestError(f"--source takes TYPE:ID, not '{each}'")
        sources.append((type_name, entity))
    if not sources:
        raise InvalidRequestError("shortest paths from where? give --source TYPE:ID")
    return work.shortest_paths(sources)


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
