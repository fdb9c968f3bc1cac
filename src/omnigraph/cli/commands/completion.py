"""Print completion scripts for shells, made from the command specs and their parsers: `completion`."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.cli import specs
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import GLOBAL_FLAGS, Command, command_parser
from omnigraph.cli.specs import GROUPS, CommandSpec

_SHELLS = ("bash", "zsh", "fish")
_EXAMPLES = """\
  omnigraph completion bash > ~/.local/share/bash-completion/completions/omnigraph
  omnigraph completion zsh > ~/.zfunc/_omnigraph
  omnigraph completion fish > ~/.config/fish/completions/omnigraph.fish"""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a command.

    Attributes:
        names: its spellings.
        help: its description.
        takes_value: whether a value follows it.
        choices: the possible values, where they are known.
    """

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]


def completion_script(shell: str) -> str:
    """Return the script that makes a shell complete the words of `omnigraph`."""
    if shell == "fish":
        return "\n".join(_fish()) + "\n"
    bash = "\n".join(_bash()) + "\n"
    return bash if shell == "bash" else f"#compdef omnigraph\nautoload -U +X bashcompinit && bashcompinit\n{bash}"


def command_flags(spec: CommandSpec) -> list[Flag]:
    """Return the flags that a command's help shows: its own, and the global ones that apply to it."""
    return [
        Flag(
            tuple(action.option_strings),
            action.help or "",
            action.nargs != 0,
            tuple(map(str, action.choices)) if action.choices is not None else (),
        )
        for action in command_parser(spec)._actions
        if action.option_strings and action.help != argparse.SUPPRESS
    ]


def _shown() -> list[CommandSpec]:
    return [spec for spec in specs.COMMANDS if not spec.hidden]


def _first_words() -> dict[str, str]:
    """Return the words that may follow the program's name, with their descriptions."""
    words: dict[str, str] = {}
    for spec in _shown():
        words.setdefault(spec.path[0], f"{spec.path[0]} commands" if spec.path[0] in GROUPS else spec.summary)
    return words


def _second_words(group: str) -> list[CommandSpec]:
    return [spec for spec in _shown() if spec.path[0] == group]


# --- bash, and zsh by way of it ---------------------------------------------------------------------------------------


def _bash() -> Iterator[str]:
    globals_with_value = "|".join(f"--{name}" for name, (metavar, _) in GLOBAL_FLAGS.items() if metavar)
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
    for spec in _shown():
        for flag in command_flags(spec):
            if flag.choices:
                patterns = "|".join(f'"{spec.name}|{name}"' for name in flag.names)
                yield f'    {patterns}) words="{" ".join(flag.choices)}" ;;'
    yield '    *) case "$path" in'
    yield f'      "") words="{" ".join(_first_words())} --help --version" ;;'
    for group in sorted(GROUPS):
        yield f'      "{group}") words="{" ".join(spec.path[1] for spec in _second_words(group))}" ;;'
    for spec in _shown():
        names = " ".join(name for flag in command_flags(spec) for name in flag.names)
        yield f'      "{spec.name}") words="{names}" ;;'
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
    for word, summary in _first_words().items():
        yield f"complete -c omnigraph -f -n __fish_use_subcommand -a {word} -d {_quote(summary)}"
    for group in sorted(GROUPS):
        words = " ".join(spec.path[1] for spec in _second_words(group))
        for spec in _second_words(group):
            yield (
                f"complete -c omnigraph -f -n '__fish_seen_subcommand_from {group}; and not "
                f"__fish_seen_subcommand_from {words}' -a {spec.path[1]} -d {_quote(spec.summary)}"
            )
    for spec in _shown():
        condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in spec.path)
        for flag in command_flags(spec):
            spelled = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            value = f" -x -a '{' '.join(flag.choices)}'" if flag.choices else " -r" if flag.takes_value else ""
            yield f"complete -c omnigraph -n '{condition}' {spelled}{value} -d {_quote(flag.help)}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# --- the command ------------------------------------------------------------------------------------------------------


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help="bash, zsh or fish")


def _completion(context: CommandContext) -> int:
    context.stdout.write(completion_script(context.args.shell))
    return 0


COMMANDS = {"completion": Command(_completion, _arguments, _EXAMPLES)}
