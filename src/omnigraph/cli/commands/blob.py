"""`omnigraph blob …`."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from omnigraph.cli.arguments import add_branch, add_json, add_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.whole_file import whole_file

_STAT = "  omnigraph blob stat node Book 0-1 cover --store ./library"
_GET = """\
  omnigraph blob get node Book 0-1 cover --store ./library --out cover.png
  omnigraph blob get node Book 0-1 cover --store ./library --length 8 | xxd"""


def _add_selector(parser: ArgumentParser) -> None:
    parser.add_argument("entity", choices=("node", "edge"), metavar="ENTITY", help="node or edge")
    parser.add_argument("type", metavar="TYPE", help="of the entity")
    parser.add_argument("id", metavar="ID", help="of the entity")
    parser.add_argument("property", metavar="PROPERTY", help="which of its blobs")
    where = parser.add_mutually_exclusive_group()
    add_branch(where)
    where.add_argument("--snapshot", metavar="COMMIT", help="read at this commit instead")
    add_uri(parser)


def _get_arguments(parser: ArgumentParser) -> None:
    _add_selector(parser)
    parser.add_argument("--offset", metavar="N", type=amount, default=0, help="skip so many bytes")
    parser.add_argument("--length", metavar="N", type=amount, help="so many bytes at most; all by default")
    parser.add_argument("--out", metavar="PATH", help="a file; stdout by default")


def _get(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
        which, state = _selected(args)
        pieces = graph.blob(*which, **state).stream(args.offset, args.length)
        count = 0
        with _destination(call) as file:
            for piece in pieces:
                file.write(piece)
                count += len(piece)
    if args.out is not None:
        call.say(f"wrote {count} bytes: {args.out}")
    return 0


def _stat_arguments(parser: ArgumentParser) -> None:
    _add_selector(parser)
    add_json(parser)


def _stat(call: Call) -> int:
    with call.graph() as graph:
        which, state = _selected(call.args)
        blob = graph.blob(*which, **state)
        about = blob.to_dict()
    at = {"snapshot": call.args.snapshot} if call.args.snapshot is not None else {"branch": call.args.branch or "main"}
    target = {**at, "resolved_snapshot": blob.commit}
    selector = about.pop("selector")
    lines = [f"{key}: {value}" for part in (selector, about, target) for key, value in part.items()]
    return call.show({"selector": selector, **about, "target": target}, *lines)


def _selected(args: Namespace) -> tuple[tuple[str, str, str, str], dict[str, Any]]:
    """Which blob, and of which state, as `Graph.blob` takes them."""
    return (args.entity, args.type, args.id, args.property), {"branch": args.branch, "commit": args.snapshot}


@contextmanager
def _destination(call: Call) -> Iterator[IO[bytes]]:
    if call.args.out is None:
        yield call.answers_to.buffer
    else:
        with whole_file(Path(call.args.out), "the blob") as file:
            yield file


COMMANDS = {"get": Command(_get, _get_arguments, _GET), "stat": Command(_stat, _stat_arguments, _STAT)}
