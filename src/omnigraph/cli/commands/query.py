"""`omnigraph query`."""

from argparse import ArgumentParser

from omnigraph.cli import render
from omnigraph.cli.arguments import add_branch, add_query, query_params, query_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.config import TABLE_WIDTH
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph query --store ./library -e 'query q() { match { $b: Book } return { $b.title } limit 5 }'
  omnigraph query books_of --store ./library --query library.gq --params '{"a": "Le Guin"}' --format json"""


def _arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    where = parser.add_mutually_exclusive_group()
    add_branch(where)  # type: ignore[arg-type]  # a group takes arguments as a parser does
    where.add_argument("--snapshot", metavar="COMMIT", help="read at this commit instead")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=render.FORMATS, help="how to print the rows; table by default")
    form.add_argument("--json", action="store_true", help="the same as --format json")


def _run(call: Call) -> int:
    args = call.args
    text, params = query_text(args), query_params(args)
    form = "json" if args.json else args.format or call.config.defaults.get("output", "table")
    if form not in render.FORMATS:
        raise InvalidRequestError(f"'{form}' is no output format; there are: {', '.join(render.FORMATS)}")
    with call.asked() as graph:
        result = graph.query(text, params, name=args.name, branch=args.branch, commit=args.snapshot)
        lines = render.rendered(
            result.to_json(),
            form,
            width=int(call.config.defaults.get("table_max_column_width", TABLE_WIDTH)),
            wrap=call.config.defaults.get("table_cell_layout") == "wrap",
        )
        for line in lines:
            call.say(line)
    return 0


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
