"""Arguments that several commands share."""

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from pathlib import Path
from typing import Any

from omnigraph import clock
from omnigraph.errors import InvalidRequestError

# What every library below takes for a number.
_DIGITS_MAX = 18


def add_json(parser: ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")


def add_positional_uri(parser: ArgumentParser) -> None:
    """The graph as the first argument."""
    parser.add_argument("uri", nargs="?", metavar="URI", help="the graph's storage, like --store")


def add_uri(parser: ArgumentParser) -> None:
    """The graph as `--uri`, where arguments stand for something else."""
    parser.add_argument("--uri", metavar="URI", help="the graph's storage, like --store")


def add_branch(parser: _ActionsContainer, *, help: str = "the branch; main by default") -> None:
    """`--branch`."""
    parser.add_argument("--branch", metavar="BRANCH", help=help)


def add_earlier(parser: ArgumentParser) -> None:
    """`--at` and `--number`: an earlier state of a branch."""
    parser.add_argument("--at", metavar="TIME", help="the branch as it was at this time")
    parser.add_argument("--number", metavar="N", type=amount, help="the branch as its commit of this number left it")


def state_named(args: Namespace) -> dict[str, Any]:
    """The state that arguments name, as a graph takes it, open or served."""
    return {name: getattr(args, name) for name in ("branch", "commit", "number", "tag", "at") if name in args}


def add_prune_previous(parser: ArgumentParser) -> None:
    """`--prune-previous`."""
    parser.add_argument(
        "--prune-previous", action="store_true", help="in the same step, show earlier commits of the branch no more"
    )


def add_where(parser: ArgumentParser) -> None:
    """`--engine`, of what is large only now and then."""
    parser.add_argument(
        "--engine",
        choices=("auto", "local", "spark"),
        default="auto",
        help="where the work is done; auto takes Spark for what is large",
    )


def add_changes_filter(parser: ArgumentParser) -> None:
    """Which changes are wanted."""
    parser.add_argument("--kind", metavar="KIND", action="append", default=[], help="node or edge; repeatable")
    parser.add_argument("--type", metavar="TYPE", action="append", default=[], help="a type; repeatable")
    parser.add_argument("--op", metavar="OP", action="append", default=[], help="insert, update or delete; repeatable")


def add_query(parser: ArgumentParser) -> None:
    """The query, its parameters and where it comes from."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="which query of the text")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--query", metavar="FILE", help="a file of queries")
    text.add_argument("-e", "--query-string", metavar="GQ", help="the text of a query")
    add_params(parser)


def add_params(parser: ArgumentParser) -> None:
    """`--params` and `--params-file`."""
    params = parser.add_mutually_exclusive_group()
    params.add_argument("--params", metavar="JSON", help="values of the parameters, as one JSON object")
    params.add_argument("--params-file", metavar="FILE", help="the same from a file")


def query_text(args: Namespace) -> str:
    """The text of the query.

    Raises:
        InvalidRequestError: none was given.
    """
    if args.query_string is not None:
        return str(args.query_string)
    if args.query is not None:
        return read_text(args.query, "the queries")
    raise InvalidRequestError(
        "by-name invocation needs a server (the stored-query catalog is server-owned); give the text with --query FILE "
        "or -e TEXT"
    )


def query_params(args: Namespace) -> dict[str, object] | None:
    """The values of the parameters.

    Raises:
        InvalidRequestError: they are no JSON object.
    """
    text = args.params
    if args.params_file is not None:
        text = read_text(args.params_file, "the parameters")
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError as fault:
        raise InvalidRequestError(f"the parameters are not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise InvalidRequestError("the parameters must be one JSON object")
    return found


def read_text(path: str, what: str) -> str:
    """The text of a file.

    Raises:
        InvalidRequestError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8"
        raise InvalidRequestError(f"{what} cannot be read from {path}: {reason}") from None


def amount(text: str) -> int:
    """How many: of rows, commits or bytes. What is out of place in it is a mistake in typing, not of a graph."""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise ArgumentTypeError(f"'{text}' is no whole number of at most {_DIGITS_MAX} digits")
    return int(text)


def duration_s(text: str) -> int:
    """Seconds of a duration like `30m` or `7d`."""
    try:
        return clock.duration_s(text)
    except ValueError as wrong:
        raise ArgumentTypeError(str(wrong)) from None
