"""Run algorithms and SQL over a whole graph on Spark: `analytics`, `spark-sql`."""

import logging
from argparse import ArgumentParser, Namespace
from typing import Any

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, add_spark, add_uri, amount
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import cell, table
from omnigraph.cli.validation import path_sources, spark_settings
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
_SQL_EXAMPLES = "  omnigraph spark-sql 'SELECT genre, count(*) FROM Book GROUP BY genre' --store ./library"


def _analytics_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("algorithm", choices=ALGORITHMS, metavar="ALGORITHM", help=", ".join(ALGORITHMS))
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--edge", metavar="TYPE", action="append", help="only edges of this type; repeatable")
    parser.add_argument(
        "--source", metavar="TYPE:ID", action="append", default=[], help="source of shortest paths; repeatable"
    )
    parser.add_argument("--top", metavar="N", type=amount, default=20, help="show the top N rows; 20 by default")
    parser.add_argument("--write", metavar="PROPERTY", help="write the values into this property, as one commit")
    add_spark(parser)
    add_json(parser)


def _analytics(context: CommandContext) -> int:
    args = context.args
    with context.graph(read_only=args.write is None) as graph:
        graph.spark.session(spark_settings(args))
        result = _run_algorithm(graph.spark.analytics(edges=args.edge, branch=args.branch), args)
        value = "degree" if args.algorithm == "degrees" else "value"
        if args.write is not None:
            written = result.write_back({value: args.write}, actor=context.actor)
            return context.show(
                {"property": args.write, "entities": written.total_entities, "commit": written.commit},
                f"wrote {args.write} of {written.total_entities} entities: {written.commit}",
            )
        frame = result.frame
        columns = list(frame.columns)
        rows = [row.asDict() for row in frame.orderBy(frame[value].desc(), "type", "id").limit(args.top).collect()]
    texts = [[cell(row[name]) for name in columns] for row in rows]
    return context.show({"columns": columns, "rows": rows}, *table(columns, texts))


def _run_algorithm(analytics: Any, args: Namespace) -> Any:  # noqa: ANN401  (importing its class imports Spark)
    if args.algorithm == "shortest-paths":
        return analytics.shortest_paths(path_sources(args))
    return getattr(analytics, args.algorithm.replace("-", "_"))()


def _sql_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="SQL statement; every type is a view of the same name")
    add_branch(parser)
    parser.add_argument("--limit", metavar="N", type=amount, default=1_000, help="at most N rows; 1000 by default")
    add_spark(parser)
    add_uri(parser)
    add_json(parser)


def _sql(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        session = graph.spark.session(spark_settings(args))
        if not args.global_debug:
            # It would print the traceback of a wrong statement.
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        try:
            result = _run_sql(graph, session, args.sql, args.branch).limit(args.limit).toArrow()
        except Exception as error:
            if not type(error).__module__.startswith("pyspark."):
                raise
            raise InvalidRequestError(f"Spark refused the statement: {str(error).splitlines()[0]}") from None
    from omnigraph.storage.json_values import to_json  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    names = result.column_names
    columns = [to_json(column) for column in result.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    texts = [[cell(value) for value in row.values()] for row in rows]
    return context.show({"columns": names, "rows": rows}, *table(names, texts))


def _run_sql(graph: Any, session: Any, text: str, branch: str | None) -> Any:  # noqa: ANN401  (heavy to import)
    """Run a query over only the columns it needs, and any other statement over views of all types."""
    try:
        return graph.spark.sql(text, branch=branch)
    except InvalidRequestError as error:
        if error.code != "not_a_query":
            raise
    graph.spark.views(branch=branch)
    return session.sql(text)


COMMANDS = {
    "analytics": Command(_analytics, _analytics_arguments, _EXAMPLES),
    "spark-sql": Command(_sql, _sql_arguments, _SQL_EXAMPLES),
}
