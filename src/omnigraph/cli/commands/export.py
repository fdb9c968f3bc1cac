"""`omnigraph export`."""

from argparse import SUPPRESS, ArgumentParser
from dataclasses import asdict

from omnigraph.cli.arguments import add_branch, add_earlier, add_positional_uri, amount, state_named
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph export ./library > library.jsonl
  omnigraph export ./library --type Book --format parquet --out ./books
  omnigraph export ./library --files 8 --out ./parts"""


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--commit", metavar="ID", help="at this commit instead")
    parser.add_argument("--tag", metavar="TAG", help="at the commit of this tag instead")
    add_earlier(parser)
    parser.add_argument("--type", metavar="TYPE", action="append", help="only this type; repeatable")
    parser.add_argument(
        "--format", choices=("jsonl", "parquet", "csv", "graphml"), default="jsonl", help="jsonl by default"
    )
    parser.add_argument("--out", metavar="PATH", help="a file or folder; stdout by default")
    parser.add_argument(
        "--files", metavar="N", type=amount, help="up to N files for each type, written at once on Spark"
    )
    parser.add_argument("--json", action="store_true", help="with --out: say what was written as a JSON document")
    parser.add_argument("--jsonl", action="store_true", help=SUPPRESS)


def _run(call: Call) -> int:
    args = call.args
    where = state_named(args)
    with call.graph() as graph:
        if args.out is None:
            if args.files is not None:
                raise InvalidRequestError("many files go into a folder: name it with --out")
            if args.format not in ("jsonl", "graphml"):
                raise InvalidRequestError(f"{args.format} goes to files: name a place with --out")
            graph.export(call.answers_to.buffer, format=args.format, types=args.type, **where)
            return 0
        done = graph.export(args.out, format=args.format, types=args.type, files=args.files, **where)
    lines = [f"{key}: {count} entities" for key, count in done.rows.items()]
    return call.show(asdict(done), *lines, *(f"wrote {file}" for file in done.files), f"at commit {done.commit}")


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
