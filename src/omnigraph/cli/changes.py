"""Changes of entities, for people; and how the states that are compared are named."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.cli.render import cell
from omnigraph.errors import InvalidRequestError

_CAUSE = {
    "commit": "graph_commit_id",
    "branch": "authored_branch",
    "parent": "parent_commit_id",
    "merged_parent": "merged_parent_commit_id",
    "actor": "actor_id",
    "authored_at": "authored_at",
}


def add_compared(parser: ArgumentParser) -> None:
    """Take the two states to compare: `OLDER NEWER`, `OLDER...NEWER` or `OLDER..NEWER`."""
    parser.add_argument("older", metavar="OLDER", help="a branch, tag or commit; BRANCH@TIME, or BRANCH@NUMBER")
    parser.add_argument(
        "newer",
        metavar="NEWER",
        nargs="?",
        help="another. Of two branches, shows what NEWER did since both parted (as OLDER...NEWER does); "
        "OLDER..NEWER compares the two heads",
    )


def compared_states(args: Namespace, branches: Iterable[str]) -> tuple[str, str, bool]:
    """Return the two states to compare, and whether to compare with their merge base.

    Raises:
        InvalidRequestError: only one state is named.
    """
    if args.newer is not None:
        return args.older, args.newer, {args.older, args.newer} <= set(branches)
    for dots in ("...", ".."):
        older, found, newer = args.older.partition(dots)
        if found:
            return older or "main", newer or "main", dots == "..."
    raise InvalidRequestError(f"name two states to compare, like 'main {args.older}' or 'main...{args.older}'")


def cause_lines(cause: Mapping[str, Any]) -> list[str]:
    """The commit that changes belong to."""
    return [f"{name}: {cause[key]}" for name, key in _CAUSE.items() if key in cause]


def change_lines(change: Mapping[str, Any]) -> list[str]:
    """One change: what happened to which entity, then its properties."""
    first = f"{change['op']} {change['kind']} {change['type']['name']} {change['id']}"
    return [first, *image_lines(change.get("before"), change.get("after"))]


def image_lines(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> list[str]:
    """The properties that differ."""
    before, after = _values(was), _values(now)
    lines = []
    for name in [*after, *(name for name in before if name not in after)]:
        if name not in before:
            lines.append(f"  + {name}: {cell(after[name])}")
        elif name not in after:
            lines.append(f"  - {name}: {cell(before[name])}")
        elif before[name] != after[name]:
            lines.append(f"  {name}: {cell(before[name])} -> {cell(after[name])}")
    return lines


def _values(image: Mapping[str, Any] | None) -> dict[str, Any]:
    if image is None:
        return {}
    return {**image.get("endpoints", {}), **image["properties"]}
