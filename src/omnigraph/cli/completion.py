"""Completion scripts for shells, made from the table of commands and their parsers."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from omnigraph.cli.table import COMMANDS, GROUPS, Entry
from omnigraph.cli.words import parser_of

_HIDDEN = argparse.SUPPRESS


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a command.

    Attributes:
        names: its spellings.
        about: what it is for.
        takes_value: whether a word belongs to it.
        choices: what that word may be, where that is known.
    """

    names: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...]


def script(shell: str) -> str:
    """What a shell has to read to complete the words of `omnigraph`."""
    if shell == "fish":
        return "\n".join(_fish()) + "\n"
    bash = "\n".join(_bash()) + "\n"
    return bash if shell == "bash" else f"#compdef omnigraph\nautoload -U +X bashcompinit && bashcompinit\n{bash}"


def flags_of(entry: Entry) -> list[Flag]:
    """The flags of a command that it takes, its own and the global ones."""
    command = import_module(f"omnigraph.cli.commands.{entry.module}").COMMANDS[" ".join(entry.path[1:])]
    found = []
    for action in parser_of(entry, command)._actions:
        name = action.dest.removeprefix("global_")
        foreign = action.dest.startswith("global_") and name not in entry.takes
        if action.option_strings and action.help != _HIDDEN and not foreign:
            choices = tuple(map(str, action.choices)) if action.choices is not None else ()
            found.append(Flag(tuple(action.option_strings), action.help or "", action.nargs != 0, choices))
    return found


def _shown() -> list[Entry]:
    return [entry for entry in COMMANDS if not entry.hidden]


def _first_words() -> dict[str, str]:
    """What may follow the program's name, and what it is for."""
    words: dict[str, str] = {}
    for entry in _shown():
        about = f"{entry.path[0]} commands" if entry.path[0] in GROUPS else entry.summary
        words.setdefault(entry.path[0], about)
    return words


def _second_words(group: str) -> list[Entry]:
    return [entry for entry in _shown() if entry.path[0] == group]


# --- bash, and zsh by way of it ---------------------------------------------------------------------------------------


def _bash() -> Iterator[str]:
    globals_with_value = "--as|--server|--graph|--profile|--store|--cluster"
    yield from (
        "# Completion of omnigraph.",
        "_omnigraph() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" words="" word i skip=0',
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    word="${COMP_WORDS[i]}"',
        "    if [ $skip = 1 ]; then skip=0; continue; fi",
        '    case "$word" in',
        f"      {globals_with_value}) skip=1 ;;",
        "      -*) ;;",
        f'      *) case "$path" in "") path="$word" ;; {"|".join(sorted(GROUPS))}) path="$path $word" ;; esac ;;',
        "    esac",
        "  done",
        '  case "$path|$prev" in',
    )
    for entry in _shown():
        for flag in flags_of(entry):
            if flag.choices:
                patterns = "|".join(f'"{entry.name}|{name}"' for name in flag.names)
                yield f'    {patterns}) words="{" ".join(flag.choices)}" ;;'
    yield '    *) case "$path" in'
    yield f'      "") words="{" ".join(_first_words())} --help --version" ;;'
    for group in sorted(GROUPS):
        yield f'      "{group}") words="{" ".join(entry.path[1] for entry in _second_words(group))}" ;;'
    for entry in _shown():
        names = " ".join(name for flag in flags_of(entry) for name in flag.names)
        yield f'      "{entry.name}") words="{names}" ;;'
    yield from (
        "    esac ;;",
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o default -F _omnigraph omnigraph",
    )


# --- fish -------------------------------------------------------------------------------------------------------------


def _fish() -> Iterator[str]:
    yield "# Completion of omnigraph."
    for word, about in _first_words().items():
        yield f"complete -c omnigraph -f -n __fish_use_subcommand -a {word} -d {_quoted(about)}"
    for group in sorted(GROUPS):
        words = " ".join(entry.path[1] for entry in _second_words(group))
        for entry in _second_words(group):
            yield (
                f"complete -c omnigraph -f -n '__fish_seen_subcommand_from {group}; and not "
                f"__fish_seen_subcommand_from {words}' -a {entry.path[1]} -d {_quoted(entry.summary)}"
            )
    for entry in _shown():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in entry.path)
        for flag in flags_of(entry):
            spelled = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in flag.names)
            value = f" -x -a '{' '.join(flag.choices)}'" if flag.choices else " -r" if flag.takes_value else ""
            yield f"complete -c omnigraph -n '{seen}' {spelled}{value} -d {_quoted(flag.about)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
