"""Declare the arguments that several commands share."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ActionsContainer
from typing import Any

from omnigraph import clock
from omnigraph.cli.render import FORMATS

# The largest number of digits that fits the 64-bit integers of the libraries below.
_DIGITS_MAX = 18


def add_json(parser: ArgumentParser, *, help: str = "print one JSON document") -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help=help)


def add_format(parser: ArgumentParser) -> None:
    """Add `--format` and `--json`."""
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--format", choices=FORMATS, help="output format of the rows; table by default")
    formats.add_argument("--json", action="store_true", help="same as --format json")


def add_positional_uri(parser: ArgumentParser) -> None:
    """Add the graph as the first positional argument."""
    parser.add_argument("uri", nargs="?", metavar="URI", help="storage of the graph, like --store")


def add_uri(parser: ArgumentParser) -> None:
    """Add the graph as `--uri`, for commands with other positional arguments."""
    parser.add_argument("--uri", metavar="URI", help="storage of the graph, like --store")


def add_branch(parser: _ActionsContainer, *, help: str = "branch; main by default") -> None:
    """Add `--branch`."""
    parser.add_argument("--branch", metavar="BRANCH", help=help)


def add_branch_or_snapshot(parser: ArgumentParser) -> None:
    """Add `--branch` and `--snapshot`, which exclude each other."""
    point = parser.add_mutually_exclusive_group()
    add_branch(point)
    point.add_argument("--snapshot", metavar="COMMIT", help="read at this commit instead")


def add_earlier_state(parser: ArgumentParser) -> None:
    """Add `--at` and `--number`, which select an earlier state of a branch."""
    parser.add_argument("--at", metavar="TIME", help="the branch at this time")
    parser.add_argument("--number", metavar="N", type=amount, help="the branch after its commit with this number")


def selected_point(args: Namespace) -> dict[str, Any]:
    """Return the selected point in time, in the keywords of a graph's methods."""
    return {name: getattr(args, name) for name in ("branch", "commit", "number", "tag", "at") if name in args}


def add_entity(parser: ArgumentParser) -> None:
    """Add the type and id of one entity."""
    parser.add_argument("type", metavar="TYPE", help="type of the entity")
    parser.add_argument("id", metavar="ID", help="id of the entity")


def add_write_options(parser: ArgumentParser, *others: str) -> None:
    """Add `--prune-previous`, and those of `--message`, `--if-commit` and `--idempotency-key` that are named."""
    for name in others:
        parser.add_argument(f"--{name}", **_WRITE_OPTIONS[name])
    parser.add_argument(
        "--prune-previous", action="store_true", help="also drop earlier commits of the branch from history"
    )


_WRITE_OPTIONS: dict[str, Any] = {
    "message": {"metavar": "TEXT", "help": "commit message"},
    "if-commit": {"metavar": "ID", "help": "fail unless this is the head commit of the branch"},
    "idempotency-key": {"metavar": "KEY", "help": "a repeated write with the same key has no effect"},
}


def write_options(args: Namespace) -> dict[str, Any]:
    """Return the write options that were given, as the keywords that every write of a graph takes."""
    names = ("message", "if_commit", "idempotency_key", "prune_previous")
    return {name: value for name in names if (value := getattr(args, name, None)) not in (None, False)}


def add_retention(parser: ArgumentParser, *, what: str = "commits", prefix: str = "") -> None:
    """Add `--keep` and `--older-than`."""
    parser.add_argument("--keep", metavar="N", type=amount, help=f"{prefix}keep the newest N {what}")
    parser.add_argument(
        "--older-than", metavar="AGE", type=duration_s, help=f"{prefix}keep {what} younger than this, like 7d"
    )


def add_engine(parser: ArgumentParser, help: str = "where to run; auto uses Spark for large graphs") -> None:
    """Add `--engine` for work that is small or large."""
    parser.add_argument("--engine", choices=("auto", "local", "spark"), default="auto", help=help)


def add_load_engine(parser: ArgumentParser) -> None:
    """Add `--engine` for loads, and the Spark flags."""
    parser.add_argument(
        "--engine",
        choices=("spark", "local"),
        default="spark",
        help="spark for any amount; local for small files, in this process and without the start-up time of Spark",
    )
    add_spark(parser)


def add_spark(parser: ArgumentParser) -> None:
    """Add the settings of the Spark session."""
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", metavar="URL", help="Spark master; local Spark by default")
    spark.add_argument("--spark-conf", metavar="K=V", action="append", default=[], help="Spark setting; repeatable")


def add_changes_filter(parser: ArgumentParser) -> None:
    """Add the filter of a list of changes."""
    parser.add_argument("--kind", metavar="KIND", action="append", default=[], help="node or edge; repeatable")
    parser.add_argument("--type", metavar="TYPE", action="append", default=[], help="entity type; repeatable")
    parser.add_argument("--op", metavar="OP", action="append", default=[], help="insert, update or delete; repeatable")


def add_compared_states(parser: ArgumentParser) -> None:
    """Add the two states to compare: `OLDER NEWER`, `OLDER...NEWER` or `OLDER..NEWER`."""
    parser.add_argument("older", metavar="OLDER", help="a branch, tag or commit; BRANCH@TIME, or BRANCH@NUMBER")
    parser.add_argument(
        "newer",
        metavar="NEWER",
        nargs="?",
        help="the state to compare with. For two branches, shows the changes on NEWER since their merge base (as "
        "OLDER...NEWER does); OLDER..NEWER compares the two heads",
    )


def add_query(parser: ArgumentParser) -> None:
    """Add the query's name, text and parameters."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the query, if the text has several")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--query", metavar="FILE", help="file of queries")
    text.add_argument("-e", "--query-string", metavar="GQ", help="query text")
    add_params(parser)


def add_params(parser: ArgumentParser) -> None:
    """Add `--params` and `--params-file`."""
    params = parser.add_mutually_exclusive_group()
    params.add_argument("--params", metavar="JSON", help="values of the parameters, as one JSON object")
    params.add_argument("--params-file", metavar="FILE", help="file with that JSON object")


def amount(text: str) -> int:
    """Parse a number of rows, commits or bytes."""
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        raise ArgumentTypeError(f"'{text}' is not a whole number of at most {_DIGITS_MAX} digits")
    return int(text)


def duration_s(text: str) -> int:
    """Parse a duration like `30m` or `7d` into seconds."""
    try:
        return clock.duration_s(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
