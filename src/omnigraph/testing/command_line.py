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
    out, err = io.StringIO(), io.StringIO()
    code = main(words, out=out, err=err)
    return Ended(code, out.getvalue(), err.getvalue())
