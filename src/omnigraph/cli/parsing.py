"""Parse the command line with argparse: a subparser for every command, and global flags before or after it.

A command's module is imported, and its arguments are added, only when that command is parsed.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from omnigraph.cli.specs import ALIASES, BY_NAME, COMMANDS, COMMON, DEPRECATED, LEGEND, TOPICS, Capability, CommandSpec
from omnigraph.version import version_lines

# The flags of every command: their metavar, None for a switch, and their help.
GLOBAL_FLAGS: dict[str, tuple[str | None, str]] = {
    "store": ("URI", "storage of a graph: a path, file:// or s3://"),
    "server": ("NAME|URL", "server, by its configured name or address"),
    "cluster": ("DIR|URI", "root of a cluster"),
    "graph": ("ID", "graph of the server or cluster"),
    "profile": ("NAME", "profile of the configuration (else $OMNIGRAPH_PROFILE)"),
    "as": ("ACTOR", "actor of the write"),
    "yes": (None, "do not ask before destructive writes"),
    "quiet": (None, "do not print the target of a write, or progress, on stderr"),
    "debug": (None, "show the traceback of an error"),
}
_LETTERS = {
    Capability.ANY: "g",
    Capability.SERVED: "s",
    Capability.DIRECT: "d",
    Capability.CONTROL: "c",
    Capability.LOCAL: "l",
}
_EXAMPLES = """\
examples:
  omnigraph init mygraph --schema library.pg
  omnigraph load mygraph --data books.jsonl --mode append
  omnigraph query --store mygraph -e 'query q() { match { $b: Book } return { $b.title } }'
"""
_VERSION_FLAGS = ("-v", "--version")
_HELP_FLAGS = ("-h", "--help")


class UsageError(Exception):
    """The arguments form no valid command; the program ends with code 2."""

    def __init__(self, message: str, usage: str = "") -> None:
        super().__init__(message)
        self.usage = usage


class HelpRequested(Exception):  # noqa: N818  (not an error: leaves argparse when help or the version is asked for)
    """Carries the help or version text to print."""


def _add_no_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command takes only global flags."""


@dataclass(frozen=True, slots=True)
class Command:
    """The implementation of one command; a module of `omnigraph.cli.commands` has them in `COMMANDS`, by name.

    Attributes:
        run: runs it on a `CommandContext`; returns the exit code.
        arguments: adds its arguments to a parser.
        examples: lines to try, for its help.
        description: what it does, where the summary does not say enough.
    """

    run: Callable[[Any], int]
    arguments: Callable[[argparse.ArgumentParser], None] = _add_no_arguments
    examples: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command with its arguments and the global flags, and warnings about deprecated spellings."""

    spec: CommandSpec
    command: Command
    arguments: argparse.Namespace
    warnings: tuple[str, ...]


def parse_command(words: Sequence[str]) -> ParsedCommand:
    """Parse the words after the program's name.

    Raises:
        UsageError: there is no such command, or its arguments are wrong.
        HelpRequested: the words ask for help or the version.
    """
    for word in words:
        if not _is_utf8(word):
            raise UsageError(f"not in UTF-8: {word!a}")
    if not words or words[0] in _HELP_FLAGS:
        raise HelpRequested(_overview())
    arguments = _Parser(command="").parse_args(words)
    spec, warning = arguments.command_spec, arguments.command_warning
    del arguments.command_spec, arguments.command_warning
    return ParsedCommand(spec, load_command(spec), arguments, () if warning is None else (warning,))


def load_command(spec: CommandSpec) -> Command:
    """Import the implementation of a command."""
    command: Command = import_module(f"omnigraph.cli.commands.{spec.module}").COMMANDS[spec.name]
    return command


def command_parser(spec: CommandSpec) -> argparse.ArgumentParser:
    """Return the parser of one command, with all its arguments."""
    parser = _Parser(command=spec.name, prog=f"omnigraph {spec.name}")
    parser.add_command_arguments()
    return parser


class _VersionAction(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise HelpRequested(version_lines())


class _Parser(argparse.ArgumentParser):
    """Parser of the program (command ""), of a group (`branch`) or of a command (`branch create`).

    It adds its arguments when it is used, so that the parsers of all other commands cost almost nothing.
    """

    def __init__(self, *, command: str, warning: str | None = None, prog: str = "omnigraph") -> None:
        self._name = command
        self._spec = BY_NAME.get(command)
        super().__init__(
            prog=f"omnigraph {command}" if warning is not None else prog,
            usage=None if self._spec is not None else "%(prog)s [flags] COMMAND …",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        if self._spec is not None:
            self.set_defaults(command_spec=self._spec, command_warning=warning)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse everything, and refuse what is left over here: the usage shown is that of the command."""
        words = list(args or ())
        old = f"{self._name} {words[0]}" if words else ""
        if self._spec is not None and old in DEPRECATED:
            return _deprecated_parser(old).parse_known_args(words[1:], namespace)
        if self._spec is not None:
            self.add_command_arguments()
        else:
            self._add_subcommands(words)
        found, extras = super().parse_known_args(words, namespace)
        if extras:
            self.error(f"unrecognized arguments: {' '.join(extras)}")
        if "command_spec" not in found:
            raise UsageError("no command was given", f"{self.format_help()}\n" if self._name else self.format_usage())
        return found, []

    def add_command_arguments(self) -> None:
        """Add the arguments of the command, then the global flags; help shows only those that apply to it."""
        assert self._spec is not None
        command = load_command(self._spec)
        summary = self._spec.summary
        self.description = command.description or f"{summary[:1].upper()}{summary[1:]}."
        self.epilog = command.examples and f"examples:\n{command.examples}"
        command.arguments(self)
        self._add_global_flags(shown=self._spec.takes | {"debug"})

    def _add_subcommands(self, words: Sequence[str]) -> None:
        """Add the commands of the program or group; of the program, only those whose name is among the words."""
        commands = self.add_subparsers(title="commands", metavar="COMMAND", prog=self.prog)
        depth = len(self._name.split())
        for spec in COMMANDS:
            is_wanted = spec.path[0] == self._name or (not self._name and spec.path[0] in words)
            if is_wanted and spec.path[depth] not in commands.choices:
                commands.add_parser(spec.path[depth], command=" ".join(spec.path[: depth + 1]), help=spec.summary)
        for old, new in ALIASES.items():
            if old.split()[:-1] == self._name.split():
                commands.add_parser(old.split()[-1], command=new)
        for old in DEPRECATED:
            if old.split()[:-1] == self._name.split():
                commands.add_parser(old.split()[-1], command=DEPRECATED[old], warning=_deprecation(old))
        self._add_global_flags(shown=())

    def _add_global_flags(self, *, shown: Iterable[str]) -> None:
        """Add the global flags. Only the program's parser has defaults: those of a subparser would overwrite values."""
        flags = self.add_argument_group("global flags")
        for name, (metavar, about) in GLOBAL_FLAGS.items():
            options: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
            flags.add_argument(
                f"--{name}",
                dest=f"global_{name}",
                default=argparse.SUPPRESS if self._name else (None if metavar else False),
                help=about if name in shown else argparse.SUPPRESS,
                **options,
            )
        flags.add_argument(*_VERSION_FLAGS, action=_VersionAction, nargs=0, help="show the version")
        flags.add_argument(*_HELP_FLAGS, action="help", help="show this help")

    def format_help(self) -> str:
        """Return the help text; that of the program lists every command with what it works on."""
        return super().format_help() if self._name else _overview()

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002  (the signature of argparse)
        raise HelpRequested(self.format_help())

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self._refuse_unknown(str(value))
        super()._check_value(action, value)

    def _refuse_unknown(self, word: str) -> NoReturn:
        from difflib import get_close_matches  # noqa: PLC0415  (only for an error)

        if self._name:
            known = [spec.path[1] for spec in COMMANDS if spec.path[0] == self._name]
            self.error(f"unknown command '{self._name} {word}'; choose from {', '.join(known)}")
        near = get_close_matches(word, sorted({spec.path[0] for spec in COMMANDS}), n=1)
        self.error(f"unknown command '{word}'" + (f"; did you mean '{near[0]}'?" if near else "; see omnigraph --help"))


def _deprecated_parser(old: str) -> _Parser:
    return _Parser(command=DEPRECATED[old], warning=_deprecation(old))


def _deprecation(old: str) -> str:
    return f"warning: `omnigraph {old}` is deprecated; use `omnigraph {DEPRECATED[old]}` instead"


def _is_utf8(word: str) -> bool:
    """Return False for bytes that are not text: Python passes those on as lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(commands: Iterable[CommandSpec], width: int) -> list[str]:
    return [f"  {_LETTERS[spec.capability]}  {spec.name:<{width}}  {spec.summary}" for spec in commands]


def _topics(shown: Sequence[CommandSpec], width: int) -> Iterator[str]:
    """Yield the commands by topic; each is listed once, in the table's order."""
    for topic, words in TOPICS.items():
        firsts = words.split()
        commands = [spec for spec in shown if spec.path[0] in firsts and spec.name not in COMMON]
        yield f"{topic}:"
        yield from _listed(sorted(commands, key=lambda spec: firsts.index(spec.path[0])), width)
        yield ""


def _overview() -> str:
    """Return the help of the program: all commands with what each works on, and the global flags."""
    shown = [spec for spec in COMMANDS if not spec.hidden]
    width = max(len(spec.name) for spec in shown)
    flags = {f"--{name}{f' {metavar}' if metavar else ''}": about for name, (metavar, about) in GLOBAL_FLAGS.items()}
    flags[", ".join(_VERSION_FLAGS)] = "show the version"
    flags[", ".join(_HELP_FLAGS)] = "show this help; `omnigraph COMMAND --help` for a command"
    return "\n".join(
        [
            "usage: omnigraph [flags] COMMAND …",
            "",
            "A lakehouse graph database: typed property graphs, versioned and branched as one.",
            "",
            "common commands:",
            *_listed([BY_NAME[name] for name in COMMON], width),
            "",
            *_topics(shown, width),
            "the letter says what a command works on:",
            *(f"  {letter}  {LEGEND[capability]}" for capability, letter in _LETTERS.items()),
            "",
            "flags, before or after the command, where they apply:",
            *(f"  {flag:<20}  {about}" for flag, about in flags.items()),
            "",
            _EXAMPLES,
        ]
    )
