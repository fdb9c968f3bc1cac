"""What a command module offers: one `Command` per command, in its `COMMANDS`."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def no_arguments(_: argparse.ArgumentParser) -> None:
    """For commands that take nothing but global flags."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        run: carries it out on a `Call`; returns the exit code.
        arguments: adds its arguments to a parser.
        examples: lines to try, for its help.
        description: what it does, where the summary does not say enough.
    """

    run: Callable[[Any], int]
    arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
    examples: str = ""
    description: str = ""
