"""`omnigraph queries …`."""

from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cluster.stored_queries import wrong_queries
from omnigraph.language.query.format import format_parameter_type
from omnigraph.server.stored import StoredQuery, stored_queries


def _validate(call: Call) -> int:
    from omnigraph.cluster.access import stored_texts  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    stored = stored_texts(*call.cluster())
    wrong = dict(wrong_queries(stored.texts, stored.schema()))
    count = len(stored.texts)
    lines = [f"ERROR  query '{name}': {error}" for name, error in wrong.items()]
    if not wrong:
        lines = [f"OK  {count} stored quer{'y' if count == 1 else 'ies'} type-check against the schema"]
    statuses: list[dict[str, str]] = [
        {"name": name, "status": "error", "error": wrong[name]} if name in wrong else {"name": name, "status": "ok"}
        for name in stored.texts
    ]
    call.show({"ok": not wrong, "graph": stored.graph, "queries": statuses}, *lines)
    return 1 if wrong else 0


def _list(call: Call) -> int:
    from omnigraph.cluster.access import stored_texts  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    def line(stored: StoredQuery) -> str:
        given = ", ".join(f"${each.name}: {format_parameter_type(each.type)}" for each in stored.query.parameters)
        return f"{'mutation' if stored.is_mutation else 'read'}  {stored.name}({given}) [mcp: {stored.name}]"

    stored = stored_texts(*call.cluster())
    found = list(stored_queries(stored.texts).values())
    return call.show({"queries": [each.to_dict() for each in found]}, *map(line, found))


COMMANDS = {
    "validate": Command(_validate, add_json, "  omnigraph queries validate --cluster ./brain"),
    "list": Command(_list, add_json, "  omnigraph queries list --cluster ./brain"),
}
