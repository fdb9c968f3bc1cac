"""`omnigraph graphs …`."""

from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.config import token_for
from omnigraph.errors import InvalidRequestError


def _list(call: Call) -> int:
    scope = call.scope
    if scope.kind != "server":
        raise InvalidRequestError(f"which server? `{call.entry.name}` needs --server NAME|URL, not {scope.address}")
    from omnigraph.client.connect import graphs_at  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    found = graphs_at(scope.address, token=token_for(call.config, scope.address))
    return call.show({"graphs": found}, *(f"{each['graph_id']}\t{each['uri']}" for each in found))


COMMANDS = {"list": Command(_list, add_json, "  omnigraph graphs list --server prod")}
