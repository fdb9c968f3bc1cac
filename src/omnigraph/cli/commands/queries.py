"""Check queries against a schema, and list stored queries: `lint`, `queries …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_positional_uri
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.validation import read_text
from omnigraph.clock import SystemClock
from omnigraph.cluster.stored_queries import find_query_errors
from omnigraph.ids import UlidSource
from omnigraph.language.query.format import format_parameter_type
from omnigraph.language.query.lint import lint
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema
from omnigraph.server.stored_queries import StoredQuery, stored_queries


def _lint_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--query", metavar="FILE", required=True, help="file of queries")
    parser.add_argument("--schema", metavar="FILE", help="schema file, instead of a graph's schema")
    add_json(parser)


def _lint(context: CommandContext) -> int:
    schema, source = _schema(context)
    report = lint(read_text(context.args.query, "the queries"), schema)
    context.show(report.to_json(schema_source=source, query_path=context.args.query), *report.lines())
    return 0 if report.is_ok else 1


def _schema(context: CommandContext) -> tuple[Schema, dict[str, str]]:
    if context.args.schema is not None:
        text = read_text(context.args.schema, "the schema")
        return accept(text, ids=UlidSource(SystemClock())), {"kind": "file", "path": context.args.schema}
    with context.graph() as graph:
        return graph.schema(), {"kind": "graph", "uri": graph.uri}


def _validate(context: CommandContext) -> int:
    from omnigraph.cluster.access import read_stored_queries  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    stored = read_stored_queries(*context.cluster())
    errors = dict(find_query_errors(stored.texts, stored.schema()))
    count = len(stored.texts)
    lines = [f"ERROR  query '{name}': {error}" for name, error in errors.items()]
    if not errors:
        lines = [f"OK  {count} stored quer{'y' if count == 1 else 'ies'} type-check against the schema"]
    statuses: list[dict[str, str]] = [
        {"name": name, "status": "error", "error": errors[name]} if name in errors else {"name": name, "status": "ok"}
        for name in stored.texts
    ]
    context.show({"ok": not errors, "graph": stored.graph, "queries": statuses}, *lines)
    return 1 if errors else 0


def _list(context: CommandContext) -> int:
    from omnigraph.cluster.access import read_stored_queries  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    queries = list(stored_queries(read_stored_queries(*context.cluster()).texts).values())
    return context.show({"queries": [query.to_dict() for query in queries]}, *map(_query_line, queries))


def _query_line(stored: StoredQuery) -> str:
    parameters = ", ".join(
        f"${parameter.name}: {format_parameter_type(parameter.type)}" for parameter in stored.query.parameters
    )
    return f"{'mutation' if stored.is_mutation else 'read'}  {stored.name}({parameters}) [mcp: {stored.name}]"


COMMANDS = {
    "lint": Command(_lint, _lint_arguments, "  omnigraph lint --schema library.pg --query library.gq"),
    "queries validate": Command(_validate, add_json, "  omnigraph queries validate --cluster ./brain"),
    "queries list": Command(_list, add_json, "  omnigraph queries list --cluster ./brain"),
}
