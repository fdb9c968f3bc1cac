"""`omnigraph lint`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_positional_uri, read_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.clock import SystemClock
from omnigraph.ids import UlidSource
from omnigraph.language.query.lint import lint
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--query", metavar="FILE", required=True, help="the queries")
    parser.add_argument("--schema", metavar="FILE", help="the schema, instead of a graph's")
    add_json(parser)


def _run(call: Call) -> int:

    schema, source = _schema(call)
    report = lint(read_text(call.args.query, "the queries"), schema)
    call.show(report.to_json(schema_source=source, query_path=call.args.query), *report.lines())
    return 0 if report.is_ok else 1


def _schema(call: Call) -> tuple[Schema, dict[str, str]]:
    if call.args.schema is not None:
        text = read_text(call.args.schema, "the schema")
        return accept(text, ids=UlidSource(SystemClock())), {"kind": "file", "path": call.args.schema}
    with call.graph() as graph:
        return graph.schema(), {"kind": "graph", "uri": graph.uri}


COMMANDS = {"": Command(_run, _arguments, "  omnigraph lint --schema library.pg --query library.gq")}
