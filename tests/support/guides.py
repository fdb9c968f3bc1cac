"""Guides whose examples run as they stand.

A page is run from top to bottom in the folder the process is in:

    ```python                   one after the other, in one namespace
    ```console                  lines that begin with `$ omnigraph ` are typed; below each is what it prints
    ```pg title="library.pg"    with a title, of any language: a file is made of it

In what a command prints, `…` stands for what differs from run to run.
"""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.support.command_line import run

_BLOCK = re.compile(r"^```(\w+)(?: +title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED = "$ omnigraph "


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page.

    Attributes:
        language: what stands behind the backticks.
        title: the file to make of it, if any.
        text: what is in it.
        line: the line of the page before its text.
    """

    language: str
    title: str | None
    text: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether it is an example that is carried out."""
        return self.title is None and self.language in ("python", "console")


def blocks(guide: Path) -> list[Block]:
    """The blocks of a page, in order.

    Args:
        guide (Path): a Markdown file.

    Returns:
        list[Block]: all with a language.
    """
    text = guide.read_text(encoding="utf-8")
    return [Block(found[1], found[2], found[3], text.count("\n", 0, found.start(3))) for found in _BLOCK.finditer(text)]


def run_guide(guide: Path) -> int:
    """Run every example of a guide, from top to bottom, in the folder the process is in.

    Args:
        guide (Path): a Markdown file.

    Returns:
        int: how many there were.

    Raises:
        AssertionError: whatever an example asserts, or a command that prints something else; other errors as they are.
    """
    names: dict[str, object] = {}
    found = blocks(guide)
    before = dict(os.environ)
    try:
        for block in found:
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                # Blank lines before it, so that a failure points to the line of the guide.
                exec(compile("\n" * block.line + block.text, str(guide), "exec"), names)
            elif block.language == "console":
                _run_session(block, guide)
    finally:
        # What a guide sets for its reader is not meant for whoever comes after it here.
        os.environ.clear()
        os.environ.update(before)
    return sum(block.runs for block in found)


def _run_session(block: Block, guide: Path) -> None:
    first, *typed = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not first, f"{guide}:{block.line}: a session begins with something typed"
    for each in typed:
        line, rest = _command(each)
        assert f"$ {line}".startswith(_TYPED), f"{guide}:{block.line}: only omnigraph is typed here, not: {line}"
        ended = run(*shlex.split(line.replace("\\\n", " "))[1:])
        printed = ended.out + ended.err
        pattern = ".*?".join(re.escape(part) for part in rest.split("…"))
        assert re.fullmatch(pattern, printed.rstrip("\n"), re.DOTALL), (
            f"{guide}:{block.line}: $ {line}\nprints:\n{printed}"
        )
        assert (ended.code != 0) == rest.startswith("error:"), f"{guide}:{block.line}: $ {line}: code {ended.code}"


def _command(typed: str) -> tuple[str, str]:
    r"""What is typed, which goes on while quotes are open or a line ends with `\`, and what is printed."""
    lines = typed.rstrip("\n").split("\n")
    for count in range(1, len(lines) + 1):
        line = "\n".join(lines[:count])
        try:
            shlex.split(line)
        except ValueError:  # a quote is open, or the last line ends with `\`
            continue
        return line, "\n".join(lines[count:])
    raise AssertionError(f"a quote is left open: {typed}")
