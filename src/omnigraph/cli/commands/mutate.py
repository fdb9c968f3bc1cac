"""`omnigraph mutate`."""

import json
from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_prune_previous, add_query, query_params, query_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import PreconditionError

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
    text, params = query_text(args), query_params(args)
    branch = args.branch or "main"
    with call.graph(read_only=False) as graph:
        try:
            done = graph.mutate(
                text,
                params,
                name=args.name,
                branch=branch,
                actor=call.actor,
                message=args.message,
                if_commit=args.if_commit,
                idempotency_key=args.idempotency_key,
                prune_previous=args.prune_previous,
            )
        except PreconditionError as lost:
            if args.if_commit is None:
                raise
            if args.json:
                call.say(json.dumps(lost_race(lost), indent=2))
            call.note(f"error: {lost}")
            return LOST_RACE
        commit = None
        if done.commit is not None:
            from omnigraph.api.documents import commit_document  # noqa: PLC0415  (heavy)

            commit = commit_document(graph.snapshot(commit=done.commit).record)
        document = {
            "branch": done.branch,
            "query_name": done.query_name,
            "affected_nodes": done.affected_nodes,
            "affected_edges": done.affected_edges,
            "actor_id": call.actor,
            "commit": commit,
        }
        for warning in done.warnings:
            call.note(f"warning: {warning}")
        lines = [
            f"changed {done.branch} via {done.query_name}: {done.affected_nodes} nodes, {done.affected_edges} edges"
        ]
        if call.actor is not None:
            lines.append(f"actor_id: {call.actor}")
        return call.show(document, *lines)


def lost_race(lost: PreconditionError) -> dict[str, object]:
    """The document of a precondition that did not hold."""
    failure = {key: lost.details[key] for key in ("expected", "actual") if lost.details.get(key) is not None}
    return {"error": lost.message, "precondition_failure": failure}


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
