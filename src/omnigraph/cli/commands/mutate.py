"""`omnigraph mutate`."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from omnigraph.api.documents import commit_document
from omnigraph.cli.arguments import add_branch, add_json, add_prune_previous, add_query, query_params, query_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError, PreconditionError

LOST_RACE = 4
_EXAMPLES = """\
  omnigraph mutate --store ./library -e 'query q() { insert Author { name: "Butler" } }'
  omnigraph mutate add --store ./library --query library.gq --params '{"isbn": "0-2", "t": "Kindred"}'"""


def _arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    add_branch(parser)
    parser.add_argument("--if-commit", metavar="ID", help="only if this is the head commit of the branch")
    parser.add_argument("--message", metavar="TEXT", help="why, kept with the commit")
    parser.add_argument("--idempotency-key", metavar="KEY", help="the same key again does nothing more")
    add_prune_previous(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    by_name = call.is_by_name
    text, params = "" if by_name else query_text(args), query_params(args)
    try:
        document = _invoked(call, params) if by_name else _mutated(call, text, params)
    except PreconditionError as lost:
        if args.if_commit is None:
            raise
        if args.json:
            call.say(json.dumps(lost_race(lost), indent=2))
        call.note(f"error: {lost}")
        return LOST_RACE
    nodes, edges = document["affected_nodes"], document["affected_edges"]
    lines = [f"changed {document['branch']} via {document['query_name']}: {nodes} nodes, {edges} edges"]
    if document["actor_id"] is not None:
        lines.append(f"actor_id: {document['actor_id']}")
    return call.show(document, *lines)


def _mutated(call: Call, text: str, params: Mapping[str, object] | None) -> dict[str, Any]:
    args = call.args
    with call.graph(read_only=False) as graph:
        done = graph.mutate(
            text,
            params,
            name=args.name,
            branch=args.branch or "main",
            actor=call.actor,
            message=args.message,
            if_commit=args.if_commit,
            idempotency_key=args.idempotency_key,
            prune_previous=args.prune_previous,
        )
        commit = None
        if done.commit is not None:
            commit = commit_document(graph.snapshot(commit=done.commit).record)
    for warning in done.warnings:
        call.note(f"warning: {warning}")
    return {
        "branch": done.branch,
        "query_name": done.query_name,
        "affected_nodes": done.affected_nodes,
        "affected_edges": done.affected_edges,
        "actor_id": call.actor,
        "commit": commit,
    }


def _invoked(call: Call, params: Mapping[str, object] | None) -> dict[str, Any]:
    """A mutation that the server keeps."""
    args = call.args
    if args.message is not None or args.prune_previous:
        raise InvalidRequestError("a stored mutation takes neither --message nor --prune-previous")
    with call.served(call.scope) as graph:
        return graph.invoke(
            args.name,
            params,
            branch=args.branch,
            expect_mutation=True,
            if_commit=args.if_commit,
            idempotency_key=args.idempotency_key,
        )


def lost_race(lost: PreconditionError) -> dict[str, object]:
    """The document of a precondition that did not hold."""
    failure = {key: lost.details[key] for key in ("expected", "actual") if lost.details.get(key) is not None}
    return {"error": lost.message, "precondition_failure": failure}


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
