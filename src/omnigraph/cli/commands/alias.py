"""`omnigraph alias`."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.cli.arguments import add_params, query_params
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.config import Config
from omnigraph.cli.results import add_form, form_of, show_result
from omnigraph.cli.scope import served_at
from omnigraph.errors import InvalidRequestError

_DESCRIPTION = """\
Call a query that a server keeps, by the name that the configuration gives it under `aliases:`, with the server, the
graph, the order of its arguments, values for some of them, and a format.

  aliases: { books: { server: prod, graph: library, query: books_of, args: [author], params: { limit: 10 } } }"""
_EXAMPLES = """\
  omnigraph alias books 'Le Guin'
  omnigraph alias books --params '{"author": "Le Guin"}' --json"""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="under `aliases:` in the configuration")
    parser.add_argument("args", nargs="*", metavar="ARGS", help="values of its arguments, as JSON or as texts")
    add_params(parser)
    add_form(parser)


def _run(call: Call) -> int:
    args = call.args
    alias = _alias(call.config, args.name)
    params = _params(args.name, alias, args.args) | (query_params(args) or {})
    form = form_of(call, usual=alias.get("format"))
    with call.served(served_at(str(alias["server"]), alias.get("graph"), call.config)) as graph:
        document = graph.invoke(str(alias["query"]), params, expect_mutation=False)
    show_result(call, document, form)
    return 0


def _alias(config: Config, name: str) -> Mapping[str, Any]:
    alias = config.aliases.get(name)
    if alias is None:
        raise InvalidRequestError(f"unknown alias '{name}' (not defined under `aliases:` in {config.path})")
    if (
        not isinstance(alias, dict)
        or not isinstance(alias.get("server"), str)
        or not isinstance(alias.get("query"), str)
    ):
        raise InvalidRequestError(
            f"the alias '{name}' in {config.path} must be a mapping with a 'server' and a 'query'"
        )
    if not isinstance(alias.get("args", []), list) or not isinstance(alias.get("params", {}), dict):
        raise InvalidRequestError(
            f"'args' of the alias '{name}' in {config.path} must be a list, and 'params' a mapping"
        )
    return alias


def _params(name: str, alias: Mapping[str, Any], values: Sequence[str]) -> dict[str, object]:
    """The values that the configuration has, then those that were typed."""
    names = [str(each) for each in alias.get("args", [])]
    if len(values) > len(names):
        takes = ", ".join(names) or "none"
        raise InvalidRequestError(f"the alias '{name}' takes {len(names)} arguments ({takes}), not {len(values)}")
    return {**alias.get("params", {}), **dict(zip(names, map(_value, values), strict=False))}


def _value(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text  # a text needs no quotes
    return found


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES, _DESCRIPTION)}
