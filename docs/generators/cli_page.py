"""Generate the page on the command line from the command specs and their parsers."""

import argparse

from docs.generators.docstrings import cell

from omnigraph.cli import main as program
from omnigraph.cli.parsing import GLOBAL_FLAGS, command_parser
from omnigraph.cli.specs import COMMANDS, LEGEND, CommandSpec


def page() -> str:
    """Return the page in Markdown."""
    shown = [spec for spec in COMMANDS if not spec.hidden]
    codes = " ".join((program.__doc__ or "").split("Exit codes: ")[1].split())
    rows = [
        f"| [`{spec.name}`](#{spec.name.replace(' ', '-')}) | {spec.summary} | {LEGEND[spec.capability]} |"
        for spec in shown
    ]
    overview = "\n".join(["| command | what it does | works on |", "|---|---|---|", *rows])
    parts = [
        "# Command line",
        "This page is generated from the commands themselves; change those, then run `make docs`.",
        f"Exit codes: {codes}",
        overview,
        "## Global flags",
        "Before or after the command, where they apply to it.",
        _global_flags(),
        *(_command(spec) for spec in shown),
    ]
    return "\n\n".join(parts) + "\n"


def _command(spec: CommandSpec) -> str:
    parser = command_parser(spec)
    taken = ", ".join(f"`--{name}`" for name in GLOBAL_FLAGS if name in spec.takes)
    parts = [f"## {spec.name}", parser.description or "", _flags(parser)]
    parts.append(f"Also takes {taken}." if taken else "")
    if parser.epilog:
        parts.append("```text\n" + parser.epilog.removeprefix("examples:\n").rstrip() + "\n```")
    return "\n\n".join(part for part in parts if part)


def _global_flags() -> str:
    rows = [
        f"| `--{name}{f' {cell(metavar)}' if metavar else ''}` | {cell(about)} |"
        for name, (metavar, about) in GLOBAL_FLAGS.items()
    ]
    rows += ["| `-v, --version` | show the version |", "| `-h, --help` | show the help of a command |"]
    return "\n".join(["| flag | |", "|---|---|", *rows])


def _flags(parser: argparse.ArgumentParser) -> str:
    rows = [
        f"| {_name(action)} | {cell((action.help or '').replace('%%', '%'))} |"
        for group in parser._action_groups
        if group.title != "global flags"
        for action in group._group_actions
        if action.help != argparse.SUPPRESS
    ]
    return "\n".join(["| argument | |", "|---|---|", *rows]) if rows else ""


def _name(action: argparse.Action) -> str:
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    if not action.option_strings:
        return f"`{cell(str(value))}`" + (" (optional)" if action.nargs in ("?", "*") else "")
    flags = ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")
    return f"`{cell(flags)}`" + (" (required)" if action.required else "")
