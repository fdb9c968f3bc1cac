"""`omnigraph spark-sql`."""

import logging
from argparse import ArgumentParser
from typing import Any

from omnigraph.cli import render
from omnigraph.cli.arguments import add_branch, add_json, add_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.commands.load import add_spark, spark_settings
from omnigraph.errors import InvalidRequestError


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="a statement over one view per type, named as the types are")
    add_branch(parser)
    parser.add_argument(
        "--limit", metavar="N", type=amount, default=1_000, help="at most so many rows; 1000 by default"
    )
    add_spark(parser)
    add_uri(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
        session = graph.spark.session(spark_settings(call))
        if not args.debug:
            # It would print the traceback of a wrong statement.
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        try:
            table = _asked(graph, session, args.sql, args.branch).limit(args.limit).toArrow()
        except Exception as fault:
            if not type(fault).__module__.startswith("pyspark."):
                raise
            raise InvalidRequestError(f"Spark refused the statement: {str(fault).splitlines()[0]}") from None
    from omnigraph.storage.json_values import to_json  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    columns = [to_json(column) for column in table.columns]
    rows = [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    texts = [[render.cell(value) for value in row.values()] for row in rows]
    return call.show({"columns": table.column_names, "rows": rows}, *render.table(table.column_names, texts))


def _asked(graph: Any, session: Any, text: str, branch: str | None) -> Any:  # noqa: ANN401  (heavy to import)
    """A query reads no more than it needs; anything else that Spark understands is about views of the types."""
    try:
        return graph.spark.sql(text, branch=branch)
    except InvalidRequestError as refused:
        if refused.code != "not_a_query":
            raise
    graph.spark.views(branch=branch)
    return session.sql(text)


COMMANDS = {
    "": Command(
        _run, _arguments, "  omnigraph spark-sql 'SELECT genre, count(*) FROM Book GROUP BY genre' --store ./library"
    )
}
