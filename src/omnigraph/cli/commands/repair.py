"""`omnigraph repair`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.commands.verify import verified, verified_lines
from omnigraph.cli.words import UsageError


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--confirm", action="store_true", help="put aside what cannot be read; otherwise only look")
    parser.add_argument("--force", action="store_true", help="with --confirm: look at every value, too")
    parser.add_argument(
        "--clock", action="store_true", help="instead: correct commit times that are ahead of the store's clock"
    )
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    if args.force and not args.confirm:
        raise UsageError("--force requires --confirm", "usage: omnigraph repair [URI] --confirm --force\n")
    if args.clock:
        if args.confirm:
            raise UsageError("--clock stands alone", "usage: omnigraph repair [URI] --clock\n")
        return _repair_clock(call)
    if args.confirm:
        call.echo_target()
    report = verified(call, deep=args.force, quarantine=args.confirm)
    document = {**report.to_dict(), "confirm": args.confirm, "force": args.force}
    lines = [
        f"{each['type_key']}: {each['classification']}, {each['action']}"
        + (f" ({each['error']})" if each["error"] else "")
        for each in document["datasets"]
    ]
    call.show(document, *lines, *verified_lines(document))
    return 0 if report.is_whole or report.quarantined else 1


def _repair_clock(call: Call) -> int:
    call.echo_target()
    with call.graph(read_only=False) as graph:
        corrected = graph.repair_clock(actor=call.actor)
        uri = graph.uri
    document = {
        "uri": uri,
        "corrected": [
            {
                "branch": each.branch,
                "numbers": list(each.numbers),
                "ahead_s": each.ahead_s,
                "graph_commit_id": each.entry.commit,
            }
            for each in corrected
        ],
    }
    lines = [
        f"{each.branch}: corrected the times of {len(each.numbers)} entries from #{each.numbers[0]} on, "
        f"by up to {each.ahead_s:.0f} s"
        for each in corrected
    ]
    return call.show(document, *(lines or ["no commit is ahead of the store's clock"]))


_DESCRIPTION = """\
Look for damage and, with --confirm, put aside what cannot be read so that the rest can be used. Tables here never run
ahead of what was published, so a healthy graph has nothing to repair. `omnigraph verify` tells more.

With --clock, correct the times of commits that were made by a clock ahead of the store's."""

COMMANDS = {"": Command(_run, _arguments, "  omnigraph repair ./library", _DESCRIPTION)}
