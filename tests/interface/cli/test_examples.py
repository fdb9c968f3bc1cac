"""Examples that are only shown: those of every command's help, and of pages that cannot run them. All make commands."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.cli.parsing import load_command, parse_command
from omnigraph.cli.specs import COMMANDS, CommandSpec
from omnigraph.server.main import build_parser as server_parser

ROOT = Path(__file__).parents[3]
# A first session is captured from a terminal, with the mistakes that are made in it.
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.name != "first-session.md"
]
_SHOWN = re.compile(r"^```(?:sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a shell makes of a line, and the program never sees.
_FOR_THE_SHELL = re.compile(r" (?:\||<|>|&&|&$|# ).*")


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of every line that calls the program."""
    for line in text.replace("\\\n", " ").splitlines():
        said = line.strip().removeprefix("$ ")
        # Where options stand in brackets, or several words in one place, it is a form and no example.
        if said.startswith(("omnigraph ", "omnigraph-server ")) and not re.search(r"[\[…]|[A-Z]{3,}", said):
            yield shlex.split(_FOR_THE_SHELL.sub("", said))


def check(words: list[str]) -> None:
    """The words make a command."""
    if words[0] == "omnigraph-server":
        server_parser().parse_args(words[1:])
    else:
        parse_command(words[1:])


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: spec.name)
def test_the_examples_in_the_help_of_a_command_call_that_command(spec: CommandSpec) -> None:
    lines = [line.strip() for line in load_command(spec).examples.splitlines()]
    assert lines
    for line in lines:
        assert line.startswith(f"omnigraph {spec.name}"), line
        assert parse_command(shlex.split(_FOR_THE_SHELL.sub("", line))[1:]).spec is spec


def test_every_command_that_a_page_shows_can_be_typed() -> None:
    shown = [words for page in PAGES for text in _SHOWN.findall(page.read_text()) for words in commands_in(text)]
    assert len(shown) > 5
    for words in shown:
        check(words)
