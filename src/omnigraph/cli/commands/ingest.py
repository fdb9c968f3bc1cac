"""`omnigraph ingest`, as scripts of old call it."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.commands.load import add_engine, spark_settings


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--data", metavar="FILE", required=True, help="JSON values, one after the other")
    parser.add_argument("--mode", choices=("overwrite", "append", "merge"), default="merge", help="merge by default")
    add_branch(parser)
    parser.add_argument("--from", dest="source", metavar="BRANCH", default="main", help="main by default")
    add_engine(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    call.note("warning: `omnigraph ingest` is deprecated; use `omnigraph load` instead")
    call.echo_target()
    if args.mode == "overwrite":
        call.consent()
    with call.graph(read_only=False) as graph:
        done = graph.load(
            args.data,
            mode=args.mode,
            branch=args.branch or "main",
            from_branch=args.source,
            strict=False,
            engine=args.engine,
            actor=call.actor,
            spark=spark_settings(call),
        )
        uri = graph.uri
    created = "branch created" if done.branch_created else "branch exists"
    lines = [
        f"ingested {done.total_entities} entities from {uri} into branch {done.branch} from {args.source} with "
        f"{done.mode} ({created})"
    ]
    lines += [f"node type '{name}': {count} entities loaded" for name, count in done.nodes.items()]
    lines += [f"edge type '{name}': {count} entities loaded" for name, count in done.edges.items()]
    if call.actor is not None:
        lines.append(f"actor_id: {call.actor}")
    document = {**done.to_dict(), "base_branch": args.source, "actor_id": call.actor}
    return call.show(document, *lines)


COMMANDS = {"": Command(_run, _arguments, "  omnigraph ingest ./library --data books.jsonl")}
