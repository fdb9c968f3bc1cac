"""`omnigraph tag …`."""

from argparse import ArgumentParser
from dataclasses import asdict

from omnigraph.cli.arguments import add_branch, add_earlier, add_json, add_uri, state_named
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the tag")
    add_branch(parser, help="its head commit; main by default")
    parser.add_argument("--commit", metavar="ID", help="this commit instead")
    add_earlier(parser)
    add_uri(parser)
    add_json(parser)


def _create(call: Call) -> int:
    args = call.args
    call.echo_target()
    with call.graph(read_only=False) as graph:
        tag = graph.tags.create(args.name, actor=call.actor, **state_named(args))
    return call.show(asdict(tag), f"tagged {tag.commit} as {tag.name}")


def _list_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_json(parser)


def _list(call: Call) -> int:
    with call.graph() as graph:
        names = list(graph.tags)
    return call.show({"tags": names}, *names)


def _one_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the tag")
    add_uri(parser)
    add_json(parser)


def _show(call: Call) -> int:
    with call.graph() as graph:
        document = asdict(graph.tags.read(call.args.name))
    return call.show(document, *(f"{key}: {value}" for key, value in document.items() if value is not None))


def _delete(call: Call) -> int:
    call.echo_target()
    with call.graph(read_only=False) as graph:
        graph.tags.delete(call.args.name)
    return call.show({"name": call.args.name}, f"deleted tag {call.args.name}; its commit stays")


COMMANDS = {
    "create": Command(_create, _create_arguments, "  omnigraph tag create v1 --store ./library"),
    "list": Command(_list, _list_arguments, "  omnigraph tag list --store ./library"),
    "show": Command(_show, _one_arguments, "  omnigraph tag show v1 --store ./library"),
    "delete": Command(_delete, _one_arguments, "  omnigraph tag delete v1 --store ./library"),
}
