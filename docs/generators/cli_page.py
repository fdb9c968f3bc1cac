"""The page on the command line, from the table of commands and their parsers."""

import argparse
from importlib import import_module

from docs.generators.docstrings import cell

from omnigraph.cli import main as program
from omnigraph.cli.table import COMMANDS, LEGEND, Entry
from omnigraph.cli.words import GLOBALS, parser_of


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    shown = [entry for entry in COMMANDS if not entry.hidden]
    codes = " ".join((program.__doc__ or "").split("Exit codes: ")[1].split())
    rows = [
        f"| [`{each.name}`](#{each.name.replace(' ', '-')}) | {each.summary} | {LEGEND[each.capability]} |"
        for each in shown
    ]
    overview = "\n".join(["| command | what it does | works on |", "|---|---|---|", *rows])
    parts = [
        "# Command line",
        "This page is generated from the commands themselves; change those, then run `make docs`.",
        f"Exit codes: {codes}",
        overview,
        "## Flags of every command",
        _flags(_parser(shown[0]), everywhere=True),
        *(_command(entry) for entry in shown),
    ]
    return "\n\n".join(parts) + "\n"


def _command(entry: Entry) -> str:
    parser = _parser(entry)
    taken = ", ".join(f"`--{name}`" for name in GLOBALS if name in entry.takes)
    parts = [f"## {entry.name}", parser.description or "", _flags(parser, everywhere=False)]
    parts.append(f"Also takes {taken}." if taken else "")
    if parser.epilog:
        parts.append("```text\n" + parser.epilog.removeprefix("examples:\n").rstrip() + "\n```")
    return "\n\n".join(part for part in parts if part)


def _parser(entry: Entry) -> argparse.ArgumentParser:
    command = import_module(f"omnigraph.cli.commands.{entry.module}").COMMANDS[" ".join(entry.path[1:])]
    return parser_of(entry, command)


def _flags(parser: argparse.ArgumentParser, *, everywhere: bool) -> str:
    rows = [
        f"| {_name(action)} | {cell((action.help or '').replace('%%', '%'))} |"
        for group in parser._action_groups
        if (group.title == "global flags") is everywhere
        for action in group._group_actions
        if action.help != argparse.SUPPRESS
    ]
    return "\n".join(["| argument | |", "|---|---|", *rows]) if rows else ""


def _name(action: argparse.Action) -> str:
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    if not action.option_strings:
        return f"`{cell(str(value))}`" + (" (may be left out)" if action.nargs in ("?", "*") else "")
    flags = ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")
    return f"`{cell(flags)}`" + (" (needed)" if action.required else "")
