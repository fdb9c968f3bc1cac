"""Create a graph, show and change its schema, and show what it holds: `init`, `schema …`, `snapshot`, `stats`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, add_write_options, write_options
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import size, table
from omnigraph.cli.validation import read_text
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import dump_plan


def _init_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("uri", metavar="URI", help="storage of the new graph: a folder or s3://bucket/prefix")
    parser.add_argument("--schema", metavar="FILE", required=True, help="schema of the graph")
    parser.add_argument(
        "--force",
        action="store_true",
        help="accepted for compatibility; the files of an interrupted init are always replaced",
    )
    add_json(parser)


def _init(context: CommandContext) -> int:
    from omnigraph.api.open import init  # noqa: PLC0415  (imports lance; help must not: test_startup)
    from omnigraph.cluster.ledger import refuse_managed_graph  # noqa: PLC0415  (imports obstore)

    uri = context.args.uri
    text = read_text(context.args.schema, "the schema")
    refuse_managed_graph(context.scope.address, "declare the graph in its cluster.yaml")
    with init(context.scope.address, text, actor=context.config.actor) as graph:
        first = graph.snapshot()
    document = {"uri": uri, "branch": first.branch, "graph_commit_id": first.commit}
    return context.show(document, f"initialized {uri}")


def _state_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    add_json(parser)


def _show(context: CommandContext) -> int:
    with context.open_for_queries() as graph:
        text = graph.schema_text(branch=context.args.branch or "main")
    return context.show({"schema_source": text}, text.removesuffix("\n"))


def _change_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--schema", metavar="FILE", required=True, help="the new schema of the graph")
    parser.add_argument("--allow-data-loss", action="store_true", help="delete dropped data from older commits too")
    parser.add_argument(
        "--validated", action="store_true", help="also make changes that depend on the data, after checking it"
    )
    add_branch(parser)
    add_json(parser)


def _apply_arguments(parser: ArgumentParser) -> None:
    _change_arguments(parser)
    add_write_options(parser)


def _plan(context: CommandContext) -> int:
    args = context.args
    text = read_text(args.schema, "the schema")
    with context.graph() as graph:
        plan = graph.schema_plan(
            text, branch=args.branch or "main", allow_data_loss=args.allow_data_loss, validated=args.validated
        )
        steps = dump_plan(plan.steps)
        document = {
            "uri": graph.uri,
            "supported": steps["supported"],
            "step_count": len(plan.steps),
            "steps": steps["steps"],
        }
        return context.show(
            document,
            f"schema plan for {graph.uri}",
            f"supported: {'yes' if plan.supported else 'no'}",
            *_step_lines(plan),
        )


def _apply(context: CommandContext) -> int:
    args = context.args
    text = read_text(args.schema, "the schema")
    if context.scope.kind == "store":
        from omnigraph.cluster.ledger import refuse_managed_graph  # noqa: PLC0415  (imports obstore)

        refuse_managed_graph(context.scope.address, "change the file that its cluster.yaml names as the schema")
    context.echo_target()
    with context.graph(read_only=False) as graph:
        result = graph.schema_apply(
            text,
            branch=args.branch or "main",
            allow_data_loss=args.allow_data_loss,
            validated=args.validated,
            actor=context.actor,
            **write_options(args),
        )
        return context.show(
            {"uri": graph.uri, **result.to_dict()},
            f"schema apply for {graph.uri}",
            "supported: yes",
            f"applied: {'yes' if result.applied else 'no'}",
            f"graph_manifest_version: {result.number}",
            *_step_lines(result.plan),
        )


def _step_lines(plan: SchemaPlan) -> list[str]:
    return [f"- {step}" for step in plan.steps] or ["no schema changes"]


def _snapshot(context: CommandContext) -> int:
    from omnigraph.api.documents import snapshot_document  # noqa: PLC0415  (only for this command)

    with context.open_for_queries() as graph:
        document = snapshot_document(graph.snapshot(branch=context.args.branch).record)
    lines = [f"{key}: {document[key]}" for key in ("graph_branch", "graph_manifest_version", "internal_schema_version")]
    lines += [
        f"{dataset['entity_kind']} type '{dataset['type_name']}' published_dataset_version="
        f"{dataset['published_dataset_version']} native_dataset_branch={dataset['native_dataset_branch'] or 'main'} "
        f"entities={dataset['entity_count']}"
        for dataset in document["datasets"]
    ]
    return context.show(document, *lines)


def _stats(context: CommandContext) -> int:
    with context.graph() as graph:
        record = graph.snapshot(branch=context.args.branch).record
        branches, tags = len(list(graph.branches)), len(list(graph.tags))
    types = [{"type_key": key, "entities": pin.rows, "bytes": pin.bytes} for key, pin in sorted(record.tables.items())]
    document = {
        "graph_branch": record.branch,
        "graph_commit_id": record.head_commit,
        "entries": record.number,
        "branches": branches,
        "tags": tags,
        "nodes": sum(pin.rows for key, pin in record.tables.items() if key.startswith("node:")),
        "edges": sum(pin.rows for key, pin in record.tables.items() if key.startswith("edge:")),
        "bytes": sum(pin.bytes for pin in record.tables.values()),
        "types": types,
    }
    lines = [f"{key}: {document[key]}" for key in ("graph_branch", "graph_commit_id", "entries", "branches", "tags")]
    lines += [f"nodes: {document['nodes']:,}", f"edges: {document['edges']:,}"]
    rows = [[key, f"{pin.rows:,}", size(pin.bytes)] for key, pin in sorted(record.tables.items())]
    return context.show(document, *lines, *table(["type", "entities", "size"], rows))


COMMANDS = {
    "init": Command(_init, _init_arguments, "  omnigraph init ./library --schema library.pg"),
    "schema show": Command(_show, _state_arguments, "  omnigraph schema show ./library"),
    "schema plan": Command(_plan, _change_arguments, "  omnigraph schema plan ./library --schema next.pg"),
    "schema apply": Command(_apply, _apply_arguments, "  omnigraph schema apply ./library --schema next.pg"),
    "snapshot": Command(_snapshot, _state_arguments, "  omnigraph snapshot ./library --branch review"),
    "stats": Command(_stats, _state_arguments, "  omnigraph stats ./library"),
}
