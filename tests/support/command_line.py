"""The program `omnigraph`, run in this process."""

import io
from dataclasses import dataclass
from typing import Protocol

from omnigraph.cli.main import main


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    code: int
    out: str
    err: str


class Run(Protocol):
    """Runs `omnigraph` with the words given."""

    def __call__(self, *words: str) -> Ended:
        """Run it."""


def run(*words: str) -> Ended:
    """Run `omnigraph` with the words given."""
    answer, other = io.BytesIO(), io.StringIO()
    # As a process has it: text on top of bytes, which an export writes to.
    out = io.TextIOWrapper(answer, encoding="utf-8", write_through=True)
    code = main(words, out=out, err=other)
    out.flush()
    return Ended(code, answer.getvalue().decode(), other.getvalue())
