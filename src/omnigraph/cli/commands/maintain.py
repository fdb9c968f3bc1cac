"""`omnigraph maintain`."""

import signal
import threading
from argparse import ArgumentParser

from omnigraph import limits
from omnigraph.cli.arguments import add_json, add_positional_uri, amount, duration_s
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import size
from omnigraph.cli.words import UsageError


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument(
        "--every", metavar="AGE", type=duration_s, default=600, help="from pass to pass; 10m by default"
    )
    parser.add_argument("--once", action="store_true", help="one pass only")
    parser.add_argument("--keep", metavar="N", type=amount, help="prune: how many of the newest commits stay")
    parser.add_argument("--older-than", metavar="AGE", type=duration_s, help="prune: younger commits stay")
    parser.add_argument(
        "--verify",
        choices=("some", "all", "none"),
        default="some",
        help="then look whether everything is there: some of it in each pass, going on in the next, by default",
    )
    parser.add_argument("--max-seconds", metavar="S", type=float, help="start nothing more after this long in a pass")
    parser.add_argument("--max-bytes", metavar="N", type=amount, help="leave larger tables alone")
    add_json(parser)


def _run(call: Call) -> int:
    from omnigraph.api.maintaining import Maintenance  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    args = call.args
    if not args.every:
        raise UsageError("--every must be longer than 0s", "usage: omnigraph maintain [URI] --every 10m\n")
    call.echo_target()
    policy = Maintenance(
        keep=args.keep,
        older_than=args.older_than,
        verify=args.verify != "none",
        verify_reads_max=None if args.verify == "all" else limits.MAINTAIN_VERIFY_READS_MAX,
        seconds_max=args.max_seconds,
        bytes_max=args.max_bytes,
    )
    code = 0
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with call.graph(read_only=False) as graph:
            for report in graph.maintain(float(args.every), policy, stop=stop):
                compacted = sum(table.changed for done in report.optimized for table in done.tables)
                document = {
                    "optimized": [done.to_dict() for done in report.optimized],
                    "pruned": None if report.pruned is None else report.pruned.to_dict(),
                    "swept": None if report.swept is None else report.swept.to_dict(),
                    "verified": None if report.verified is None else report.verified.to_dict(),
                    "left": report.left,
                    "failures": report.failures,
                    "seconds": report.seconds,
                }
                removed = "" if report.swept is None else f", removed {size(report.swept.deleted_bytes)}"
                marked = 0 if report.pruned is None else report.pruned.marked
                looked = ""
                if report.verified is not None:
                    looked = f", looked at {report.verified.found.files} files"
                    looked += f" and found {len(report.verified.findings)} things damaged" if report.damaged else ""
                line = f"{compacted} tables laid out anew, {marked} entries pruned{removed}{looked}"
                line += f" in {report.seconds:.1f} s"
                call.show(document, line, *(f"left: {each}" for each in report.left))
                for write in () if report.swept is None else report.swept.swept.held_by:
                    call.note(f"files are held by a write that has not ended: {write}")
                for failure in report.failures:
                    call.note(f"warning: {failure}")
                call.answers_to.flush()
                if args.once:
                    code = 1 if report.failures else 0
                    break
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


COMMANDS = {"": Command(_run, _arguments, "  omnigraph maintain ./library --every 10m --keep 100")}
