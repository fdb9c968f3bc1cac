"""`omnigraph cleanup`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_positional_uri, amount, duration_s
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import size
from omnigraph.errors import InvalidRequestError


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--keep", metavar="N", type=amount, help="how many of the newest versions stay")
    parser.add_argument("--older-than", metavar="AGE", type=duration_s, help="younger versions stay, like 7d")
    parser.add_argument("--confirm", action="store_true", help="do it; otherwise only look")
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    if args.keep is None and args.older_than is None:
        raise InvalidRequestError("cleanup requires at least one of --keep or --older-than")
    if args.confirm:
        call.echo_target()
        call.consent()
    with call.graph(read_only=not args.confirm) as graph:
        report = graph.cleanup(keep=args.keep, older_than=args.older_than, confirm=args.confirm, actor=call.actor)
    document = report.to_dict()
    if not args.confirm:
        call.note(
            f"preview: {report.pruned.marked} entries would be pruned and their files deleted; pass --confirm to do it"
        )
    lines = [
        f"{each['type_key']}: {each['old_versions_removed']} old versions, {size(each['bytes_removed'])}"
        + (f" ({each['error']})" if each["error"] else "")
        for each in document["datasets"]
    ]
    call.show(document, *lines)
    for write in report.swept.swept.held_by:
        call.note(f"files are held by a write that has not ended: {write}")
    for what, error in report.errors.items():
        call.note(f"warning: {what}: {error}")
    return 0


COMMANDS = {"": Command(_run, _arguments, "  omnigraph cleanup ./library --keep 10 --confirm")}
