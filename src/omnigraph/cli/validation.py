"""Validate arguments before a command does any work: what argparse cannot check, in one place."""

import json
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.arguments import write_options
from omnigraph.cli.parsing import UsageError
from omnigraph.cli.render import FORMATS
from omnigraph.cli.specs import Capability, CommandSpec
from omnigraph.errors import InvalidRequestError

if TYPE_CHECKING:  # only loads and analytics need it
    from omnigraph.pipeline.settings import SparkSettings

# What each flag means, for the error when it does not apply to a command.
_MEANINGS = {
    "server": "--server addresses a served graph",
    "cluster": "--cluster addresses a cluster",
    "graph": "--graph selects a graph within a server or cluster scope",
    "store": "--store addresses one graph's storage",
    "as": "--as sets the actor of a direct write",
    "profile": "--profile selects a configured scope",
}
HINTS = {
    Capability.DIRECT: " Address the graph's storage with a URI or --store.",
    Capability.SERVED: " Address a server with --server.",
    Capability.CONTROL: " Address the cluster's folder with --config.",
}
# Formats that can be written to stdout.
_STREAMED_FORMATS = ("jsonl", "graphml")


def refuse_foreign_flags(spec: CommandSpec, args: Namespace) -> None:
    """Refuse a global flag that does not apply to the command.

    Raises:
        InvalidRequestError: one is given.
    """
    for flag, meaning in _MEANINGS.items():
        if getattr(args, f"global_{flag}") is not None and flag not in spec.takes:
            hint = HINTS.get(spec.capability, "") if flag != "as" else ""
            raise InvalidRequestError(
                f"`{spec.name}` is a {spec.capability} command; {meaning} and does not apply.{hint}"
            )


# -- texts and files ---------------------------------------------------------------------------------------------------


def read_text(path: str, what: str) -> str:
    """Read a text file.

    Raises:
        InvalidRequestError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidRequestError(f"{what} cannot be read from {path}: {reason}") from None


def parse_json(text: str, what: str) -> Any:  # noqa: ANN401  (any JSON)
    """Parse a JSON text.

    Raises:
        InvalidRequestError: it is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequestError(f"{what} not JSON: {error}") from None


def query_text(args: Namespace) -> str:
    """Return the text of the query.

    Raises:
        InvalidRequestError: none is given.
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
    """Return the values of the query parameters.

    Raises:
        InvalidRequestError: they are not a JSON object.
    """
    text = args.params
    if args.params_file is not None:
        text = read_text(args.params_file, "the parameters")
    if text is None:
        return None
    params = parse_json(text, "the parameters are")
    if not isinstance(params, dict):
        raise InvalidRequestError("the parameters must be one JSON object")
    return params


def output_format(chosen: str) -> str:
    """Return the output format if it exists.

    Raises:
        InvalidRequestError: it does not.
    """
    if chosen not in FORMATS:
        raise InvalidRequestError(f"unknown output format '{chosen}'; use {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    return chosen


def key_value(text: str, flag: str, code: str | None = None) -> tuple[str, str]:
    """Split `KEY=VALUE`.

    Raises:
        InvalidRequestError: there is no equals sign.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequestError(f"{flag} takes KEY=VALUE, not '{text}'", **({} if code is None else {"code": code}))
    return key, value


# -- single commands ---------------------------------------------------------------------------------------------------


def spark_settings(args: Namespace) -> "SparkSettings | None":
    """Return the settings of the Spark session; None where no flag gives any.

    Raises:
        InvalidRequestError: a setting is not KEY=VALUE.
    """
    if args.master is None and not args.spark_conf:
        return None
    from omnigraph.pipeline.settings import SparkSettings  # noqa: PLC0415  (only with Spark flags)

    conf = tuple(key_value(setting, "--spark-conf", "load_option") for setting in args.spark_conf)
    return SparkSettings(master=args.master, conf=conf)


def path_sources(args: Namespace) -> list[tuple[str, str]]:
    """Return the type and id of every source of shortest paths.

    Raises:
        InvalidRequestError: there is none, or one is not TYPE:ID.
    """
    sources = []
    for source in args.source:
        type_name, colon, entity = source.partition(":")
        if not colon:
            raise InvalidRequestError(f"--source takes TYPE:ID, not '{source}'")
        sources.append((type_name, entity))
    if not sources:
        raise InvalidRequestError("shortest-paths needs a source; give --source TYPE:ID")
    return sources


def commit_filter(args: Namespace) -> dict[str, str]:
    """Return the filters of a list of commits: `actor`, `kind`.

    Raises:
        InvalidRequestError: a filter is for something else.
    """
    chosen: dict[str, str] = {}
    for text in args.filter:
        key, equals, value = text.partition("=")
        if not equals or key not in ("actor", "kind"):
            raise InvalidRequestError(f"--filter takes actor=NAME or kind=KIND, not '{text}'")
        chosen[key] = value
    return chosen


def compared_states(args: Namespace, branches: Iterable[str]) -> tuple[str, str, bool]:
    """Return the two states to compare, and whether to compare with their merge base.

    Raises:
        InvalidRequestError: only one state is given.
    """
    if args.newer is not None:
        return args.older, args.newer, {args.older, args.newer} <= set(branches)
    for dots in ("...", ".."):
        older, found, newer = args.older.partition(dots)
        if found:
            return older or "main", newer or "main", dots == "..."
    raise InvalidRequestError(f"name two states to compare, like 'main {args.older}' or 'main...{args.older}'")


def check_export(args: Namespace) -> None:
    """Check that an export without `--out` can go to stdout.

    Raises:
        InvalidRequestError: it cannot.
    """
    if args.out is None and args.files is not None:
        raise InvalidRequestError("--files writes into a folder: name it with --out")
    if args.out is None and args.format not in _STREAMED_FORMATS:
        raise InvalidRequestError(f"the format {args.format} needs files: name a place with --out")


def check_stored_query(args: Namespace) -> None:
    """Check that a stored query is read at a branch or a commit.

    Raises:
        InvalidRequestError: it is read at another point.
    """
    if args.tag is not None or args.at is not None or args.number is not None:
        raise InvalidRequestError("a stored query reads a branch or a commit; do not give --tag, --number or --at")


def check_stored_mutation(args: Namespace) -> None:
    """Check that a stored mutation is given no flag that the server does not take.

    Raises:
        InvalidRequestError: it is.
    """
    if write_options(args).keys() - {"if_commit", "idempotency_key"}:
        raise InvalidRequestError("a stored mutation takes neither --message nor --prune-previous")


def check_resolutions_file(args: Namespace) -> None:
    """Check that the file for the conflicts of a merge does not exist.

    Raises:
        InvalidRequestError: it does.
    """
    if args.write_resolutions is not None and Path(args.write_resolutions).exists():
        raise InvalidRequestError(f"{args.write_resolutions} exists already; name a new file for the decisions")


def check_prune(args: Namespace) -> None:
    """Check that a prune says which commits stay.

    Raises:
        InvalidRequestError: it does not.
    """
    if args.keep is None and args.older_than is None and not args.now and not args.commit:
        raise InvalidRequestError("prune requires at least one of --keep, --older-than, --commit and --now")


def check_cleanup(args: Namespace) -> None:
    """Check that a cleanup says which versions stay.

    Raises:
        InvalidRequestError: it does not.
    """
    if args.keep is None and args.older_than is None:
        raise InvalidRequestError("cleanup requires at least one of --keep or --older-than")


def check_repair(args: Namespace) -> None:
    """Check that a forced repair is confirmed, and that `--clock` stands alone.

    Raises:
        UsageError: it is not, or does not.
    """
    if args.force and not args.confirm:
        raise UsageError("--force requires --confirm", "usage: omnigraph repair [URI] --confirm --force\n")
    if args.clock and args.confirm:
        raise UsageError("--clock stands alone", "usage: omnigraph repair [URI] --clock\n")


def check_maintain(args: Namespace) -> None:
    """Check that there is time between two passes.

    Raises:
        UsageError: there is none.
    """
    if not args.every:
        raise UsageError("--every must be longer than 0s", "usage: omnigraph maintain [URI] --every 10m\n")


def check_embed(args: Namespace) -> None:
    """Check that the files come from `--seed`, or from `--input`, `--output` and `--spec`.

    Raises:
        InvalidRequestError: they come from both, or from neither.
    """
    paths = (args.input, args.output, args.spec)
    if args.seed is not None and any(path is not None for path in paths):
        raise InvalidRequestError("--seed names the input, the output and what to embed; do not give them as flags too")
    if args.seed is None and any(path is None for path in paths):
        raise InvalidRequestError("give --seed FILE, or all of --input, --output and --spec")
