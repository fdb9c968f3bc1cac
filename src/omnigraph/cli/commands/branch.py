"""`omnigraph branch …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the new branch")
    parser.add_argument(
        "--from", dest="source", metavar="BRANCH", default="main", help="where it starts; main by default"
    )
    add_uri(parser)
    add_json(parser)


def _create(call: Call) -> int:
    name, source = call.args.name, call.args.source
    call.echo_target()
    with call.graph(read_only=False) as graph:
        graph.branches.create(name, source=source, actor=call.actor)
        document = {"uri": graph.uri, "from": source, "name": name.strip(), "actor_id": call.actor}
    return call.show(document, f"created branch {name.strip()} from {source}")


def _list_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_json(parser)


def _list(call: Call) -> int:
    with call.graph() as graph:
        names = list(graph.branches)
    return call.show({"branches": names}, *names)


def _delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="which branch")
    add_uri(parser)
    add_json(parser)


def _delete(call: Call) -> int:
    name = call.args.name
    call.echo_target()
    call.consent()
    with call.graph(read_only=False) as graph:
        graph.branches.delete(name, actor=call.actor)
        document = {"uri": graph.uri, "name": name.strip(), "actor_id": call.actor}
    return call.show(document, f"deleted branch {name.strip()}")


COMMANDS = {
    "create": Command(_create, _create_arguments, "  omnigraph branch create review --store ./library"),
    "list": Command(_list, _list_arguments, "  omnigraph branch list --store ./library --json"),
    "delete": Command(_delete, _delete_arguments, "  omnigraph branch delete review --store ./library"),
}
