"""From the words of the command line to one command and its arguments.

Global flags may stand before or after the command. The words before it are therefore looked at only to find the
command; then one parser, made for that command alone, reads everything.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from omnigraph.cli import table
from omnigraph.cli.command import Command
from omnigraph.version import version_lines

_WITH_VALUE = {"--as", "--server", "--graph", "--profile", "--store", "--cluster"}
_WITHOUT_VALUE = {"--yes", "--quiet", "--debug"}
GLOBALS = ("as", "server", "graph", "profile", "store", "cluster", "yes", "quiet")


class UsageError(Exception):
    """The words make no command; the program ends with code 2."""

    def __init__(self, message: str, usage: str = "") -> None:
        super().__init__(message)
        self.usage = usage


class HelpAsked(Exception):  # noqa: N818  (no error: how the parser leaves when help is asked for)
    """Somebody asked for help; this is it."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed, understood.

    Attributes:
        entry: which command.
        command: how it is carried out.
        arguments: its arguments and the global flags.
        warnings: what to say about old spellings.
    """

    entry: table.Entry
    command: Command
    arguments: argparse.Namespace
    warnings: tuple[str, ...]


class _Version(argparse.Action):
    """Says the version, whatever else was typed."""

    def __call__(self, *_: object) -> NoReturn:
        raise HelpAsked(version_lines())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise HelpAsked(message or "") if status == 0 else UsageError(message or "", self.format_usage())

    def print_help(self, file: object = None) -> None:  # noqa: ARG002  (as the parser calls it)
        raise HelpAsked(self.format_help())


def understood(words: Sequence[str]) -> Typed:
    """The command that was typed.

    Raises:
        UsageError: there is no such command, or its arguments are wrong.
        HelpAsked: help was asked for.
    """
    for word in words:
        if not _is_text(word):
            raise UsageError(f"not in UTF-8: {word!a}")
    before, path, after = _split(words)
    if not path:
        if any(word in ("-v", "--version") for word in before):
            path = ("version",)
            before = [word for word in before if word not in ("-v", "--version")]
        else:
            from omnigraph.cli.overview import overview  # noqa: PLC0415  (only for help)

            if any(word in ("-h", "--help") for word in before) or not words:
                raise HelpAsked(overview())
            raise UsageError("no command was given", "usage: omnigraph [flags] COMMAND …\n")
    warnings = []
    for old, new in table.DEPRECATED.items():
        if path == old or (len(old) > 1 and path + tuple(after[: len(old) - len(path)]) == old):
            if old[0] == "query" and len(old) > 1:
                after = after[len(old) - len(path) :]
            warnings.append(f"warning: `omnigraph {' '.join(old)}` is deprecated; use `omnigraph {new[0]}` instead")
            path = new
    path = table.ALIASES.get(path, path)
    entry = table.BY_PATH.get(path)
    if entry is None:
        raise _unknown(path, after)
    command = import_module(f"omnigraph.cli.commands.{entry.module}").COMMANDS[" ".join(entry.path[1:])]
    parser = parser_of(entry, command)
    return Typed(entry, command, parser.parse_args([*before, *after]), tuple(warnings))


def _is_text(word: str) -> bool:
    """Whether others could be given it, and it be printed: bytes that are no text come as halves of characters."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def parser_of(entry: table.Entry, command: Command) -> argparse.ArgumentParser:
    """The parser of one command, with the global flags."""
    parser = _Parser(
        prog=f"omnigraph {entry.name}",
        description=command.description or f"{entry.summary[:1].upper()}{entry.summary[1:]}.",
        epilog=command.examples and f"examples:\n{command.examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    command.arguments(parser)
    flags = parser.add_argument_group("global flags")
    flags.add_argument("--as", dest="global_as", metavar="ACTOR", help="who writes")
    flags.add_argument(
        "--store", dest="global_store", metavar="URI", help="a graph's storage: a path, file:// or s3://"
    )
    flags.add_argument("--server", dest="global_server", metavar="NAME|URL", help="a server, by its configured name")
    flags.add_argument("--cluster", dest="global_cluster", metavar="DIR|URI", help="a cluster's root")
    flags.add_argument("--graph", dest="global_graph", metavar="ID", help="which graph of a server or cluster")
    flags.add_argument("--profile", dest="global_profile", metavar="NAME", help="a profile of the configuration")
    flags.add_argument("--yes", dest="global_yes", action="store_true", help="do not ask before destructive work")
    flags.add_argument("--quiet", dest="global_quiet", action="store_true", help="do not say what is written to")
    flags.add_argument("--debug", action="store_true", help="show the traceback of an error")
    flags.add_argument("-v", "--version", action=_Version, nargs=0, help="show the version")
    flags.add_argument("-h", "--help", action="help", help="show this help")
    return parser


def _split(words: Sequence[str]) -> tuple[list[str], tuple[str, ...], list[str]]:
    """The words before the command, the command's own, and those after."""
    before: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word in _WITH_VALUE and at + 1 < len(words):
            before += words[at : at + 2]
            at += 2
        elif word in _WITHOUT_VALUE or word in ("-v", "--version", "-h", "--help") or word.split("=")[0] in _WITH_VALUE:
            before.append(word)
            at += 1
        else:
            raise UsageError(f"unexpected flag {word} before the command", "usage: omnigraph [flags] COMMAND …\n")
    rest = list(words[at:])
    if not rest:
        return before, (), []
    if rest[0] in table.GROUPS and len(rest) > 1 and not rest[1].startswith("-"):
        return before, (rest[0], rest[1]), rest[2:]
    return before, (rest[0],), rest[1:]


def _unknown(path: tuple[str, ...], after: Sequence[str]) -> Exception:
    from difflib import get_close_matches  # noqa: PLC0415  (only when it went wrong)

    from omnigraph.cli.overview import group_overview  # noqa: PLC0415  (only when it went wrong)

    if path[0] in table.GROUPS:
        if len(path) == 1 and not after:
            return UsageError("no command was given", f"{group_overview(path[0])}\n")
        if len(path) == 1 and after[0] in ("-h", "--help"):
            return HelpAsked(group_overview(path[0]))
        known = [entry.path[1] for entry in table.COMMANDS if entry.path[0] == path[0] and len(entry.path) > 1]
        typed = path[1] if len(path) > 1 else after[0]
        return UsageError(
            f"unknown command '{path[0]} {typed}'; there are: {', '.join(known)}", f"usage: omnigraph {path[0]} …\n"
        )
    known = sorted({entry.path[0] for entry in table.COMMANDS})
    near = get_close_matches(path[0], known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else "; see omnigraph --help"
    return UsageError(f"unknown command '{path[0]}'{hint}", "usage: omnigraph [flags] COMMAND …\n")
