"""Run queries and mutations: `query`, `mutate`, `explain`, `alias`."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.cli.arguments import (
    add_branch,
    add_earlier_state,
    add_engine,
    add_format,
    add_json,
    add_params,
    add_query,
    add_write_options,
    selected_point,
    write_options,
)
from omnigraph.cli.config import Config
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.scope import server_scope
from omnigraph.cli.validation import check_stored_mutation, check_stored_query, query_params, query_text
from omnigraph.errors import InvalidRequestError, PreconditionError

LOST_RACE = 4
_QUERY_EXAMPLES = """\
  omnigraph query --store ./library -e 'query q() { match { $b: Book } return { $b.title } limit 5 }'
  omnigraph query books_of --store ./library --query library.gq --params '{"a": "Le Guin"}' --format json"""
_MUTATE_EXAMPLES = """\
  omnigraph mutate --store ./library -e 'query q() { insert Author { name: "Butler" } }'
  omnigraph mutate add --store ./library --query library.gq --params '{"isbn": "0-2", "t": "Kindred"}'"""
_ALIAS_DESCRIPTION = """\
Run a stored query of a server by its alias. The configuration defines it under `aliases:`, with the server, the graph,
the names of its arguments, default values for parameters, and an output format.

  aliases: { books: { server: prod, graph: library, query: books_of, args: [author], params: { limit: 10 } } }"""
_ALIAS_EXAMPLES = """\
  omnigraph alias books 'Le Guin'
  omnigraph alias books --params '{"author": "Le Guin"}' --json"""


def _query_arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    point = parser.add_mutually_exclusive_group()
    add_branch(point)
    point.add_argument("--snapshot", dest="commit", metavar="COMMIT", help="read at this commit instead")
    point.add_argument("--tag", metavar="TAG", help="read at the commit of this tag instead")
    add_earlier_state(parser)
    add_engine(parser, "where to run; auto uses Spark where one process has too little memory")
    parser.add_argument("--nodes", choices=("id", "object"), default="id", help="show nodes as ids, or whole")
    add_format(parser)


def _query(context: CommandContext) -> int:
    args = context.args
    output_format, params = context.output_format(), query_params(args)
    if context.is_by_name:
        check_stored_query(args)
        with context.served(context.scope) as remote:
            document = remote.invoke(args.name, params, branch=args.branch, commit=args.commit, expect_mutation=False)
        return context.show_result(document, output_format)
    text = query_text(args)
    with context.open_for_queries() as graph:
        chosen = {"engine": args.engine, "nodes": args.nodes}
        result = graph.query(text, params, name=args.name, **chosen, **selected_point(args))
        if result.engine == "spark" and args.engine == "auto":
            context.note("note: the query needed more memory than one process may use, and ran on Spark")
        return context.show_result(result.to_json(), output_format)


def _explain_arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    add_branch(parser)
    add_engine(parser, "spark also shows the plan that Spark makes of the query")
    add_json(parser)


def _explain(context: CommandContext) -> int:
    args = context.args
    text, branch = query_text(args), args.branch or "main"
    if args.engine == "spark":
        if context.scope.kind == "server":
            raise InvalidRequestError("a server describes its own plans only; name the graph with --store")
        with context.graph() as stored:
            plan = stored.spark.explain(text, name=args.name, branch=branch)
        return context.show({"plan": plan.splitlines()}, plan)
    with context.open_for_queries() as graph:
        plan = graph.explain(text, name=args.name, branch=branch)
    return context.show({"plan": plan.splitlines()}, plan)


def _mutate_arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    add_branch(parser)
    add_write_options(parser, "if-commit", "message", "idempotency-key")
    add_json(parser)


def _mutate(context: CommandContext) -> int:
    args = context.args
    by_name = context.is_by_name
    text, params = "" if by_name else query_text(args), query_params(args)
    try:
        document = _run_stored_mutation(context, params) if by_name else _run_mutation(context, text, params)
    except PreconditionError as error:
        if args.if_commit is None:
            raise
        if args.json:
            context.print(json.dumps(_precondition_document(error), indent=2))
        context.note(f"error: {error}")
        return LOST_RACE
    nodes, edges = document["affected_nodes"], document["affected_edges"]
    lines = [f"changed {document['branch']} via {document['query_name']}: {nodes} nodes, {edges} edges"]
    if document["actor_id"] is not None:
        lines.append(f"actor_id: {document['actor_id']}")
    return context.show(document, *lines)


def _run_mutation(context: CommandContext, text: str, params: Mapping[str, object] | None) -> dict[str, Any]:
    from omnigraph.api.documents import commit_document  # noqa: PLC0415  (a query does not need it)

    args = context.args
    with context.graph(read_only=False) as graph:
        result = graph.mutate(
            text,
            params,
            name=args.name,
            branch=args.branch or "main",
            actor=context.actor,
            **write_options(args),
        )
        commit = None
        if result.commit is not None:
            commit = commit_document(graph.snapshot(commit=result.commit).record)
    for warning in result.warnings:
        context.note(f"warning: {warning}")
    return {
        "branch": result.branch,
        "query_name": result.query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": context.actor,
        "commit": commit,
    }


def _run_stored_mutation(context: CommandContext, params: Mapping[str, object] | None) -> dict[str, Any]:
    args = context.args
    check_stored_mutation(args)
    with context.served(context.scope) as graph:
        return graph.invoke(
            args.name,
            params,
            branch=args.branch,
            expect_mutation=True,
            if_commit=args.if_commit,
            idempotency_key=args.idempotency_key,
        )


def _precondition_document(error: PreconditionError) -> dict[str, object]:
    failure = {key: error.details[key] for key in ("expected", "actual") if error.details.get(key) is not None}
    return {"error": error.message, "precondition_failure": failure}


def _alias_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="alias, from `aliases:` in the configuration")
    parser.add_argument("args", nargs="*", metavar="ARGS", help="values of its arguments, as JSON or text")
    add_params(parser)
    add_format(parser)


def _alias(context: CommandContext) -> int:
    args = context.args
    alias = _configured_alias(context.config, args.name)
    params = _alias_params(args.name, alias, args.args) | (query_params(args) or {})
    output_format = context.output_format(alias.get("format"))
    with context.served(server_scope(str(alias["server"]), alias.get("graph"), context.config)) as graph:
        document = graph.invoke(str(alias["query"]), params, expect_mutation=False)
    return context.show_result(document, output_format)


def _configured_alias(config: Config, name: str) -> Mapping[str, Any]:
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


def _alias_params(name: str, alias: Mapping[str, Any], values: Sequence[str]) -> dict[str, object]:
    """Combine the configured values with the positional arguments, which win."""
    names = [str(argument) for argument in alias.get("args", [])]
    if len(values) > len(names):
        known = ", ".join(names) or "none"
        raise InvalidRequestError(f"the alias '{name}' takes {len(names)} arguments ({known}), not {len(values)}")
    return {**alias.get("params", {}), **dict(zip(names, map(_json_or_text, values), strict=False))}


def _json_or_text(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


COMMANDS = {
    "query": Command(_query, _query_arguments, _QUERY_EXAMPLES),
    "mutate": Command(_mutate, _mutate_arguments, _MUTATE_EXAMPLES),
    "explain": Command(
        _explain, _explain_arguments, "  omnigraph explain books_of --store ./library --query library.gq"
    ),
    "alias": Command(_alias, _alias_arguments, _ALIAS_EXAMPLES, _ALIAS_DESCRIPTION),
}
