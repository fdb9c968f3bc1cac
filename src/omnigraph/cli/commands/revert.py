"""`omnigraph revert`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_prune_previous, add_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("commit", metavar="COMMIT", help="the commit to undo, or the first of a range")
    parser.add_argument("last", metavar="LAST", nargs="?", help="the last of the range")
    add_branch(parser)
    parser.add_argument("--message", metavar="TEXT", help="why, kept with the commit")
    add_prune_previous(parser)
    add_uri(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    call.echo_target()
    with call.graph(read_only=False) as graph:
        done = graph.revert(
            args.commit if args.last is None else (args.commit, args.last),
            branch=args.branch or "main",
            actor=call.actor,
            message=args.message,
            prune_previous=args.prune_previous,
        )
    changes = {
        key: {"inserted": each.inserted, "updated": each.updated, "deleted": each.deleted}
        for key, each in done.changes.items()
    }
    document = {
        "branch": done.branch,
        "first": done.first,
        "last": done.last,
        "commit": done.commit,
        "changes": changes,
    }
    if done.commit is None:
        return call.show(document, "nothing to undo: everything is as before already")
    lines = [f"reverted {done.first} on {done.branch}: {done.commit}"]
    lines += [
        f"{key}: {each['inserted']} inserted, {each['updated']} updated, {each['deleted']} deleted"
        for key, each in changes.items()
    ]
    return call.show(document, *lines)


COMMANDS = {"": Command(_run, _arguments, "  omnigraph revert 01J… --store ./library --message 'wrong file'")}
