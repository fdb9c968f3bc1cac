"""How the rows of a result are printed: as was asked for, else as the operator likes it."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from omnigraph.cli import render
from omnigraph.cli.call import Call
from omnigraph.cli.config import TABLE_WIDTH
from omnigraph.errors import InvalidRequestError


def add_form(parser: ArgumentParser) -> None:
    """`--format` and `--json`."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=render.FORMATS, help="how to print the rows; table by default")
    form.add_argument("--json", action="store_true", help="the same as --format json")


def form_of(call: Call, *, usual: str | None = None) -> str:
    """The format to print in.

    Args:
        call: whose flags and configuration decide.
        usual: what is asked for where no flag says.

    Raises:
        InvalidRequestError: the configuration names one that there is not.
    """
    chosen = "json" if call.args.json else call.args.format
    form: str = chosen or usual or call.config.defaults.get("output", "table")
    if form not in render.FORMATS:
        raise InvalidRequestError(f"'{form}' is no output format; there are: {', '.join(render.FORMATS)}")
    return form


def show_result(call: Call, document: Mapping[str, Any], form: str) -> None:
    """Print a result, given as a JSON document."""
    lines = render.rendered(
        document,
        form,
        width=int(call.config.defaults.get("table_max_column_width", TABLE_WIDTH)),
        wrap=call.config.defaults.get("table_cell_layout") == "wrap",
    )
    for line in lines:
        call.say(line)
