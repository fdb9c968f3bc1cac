"""`omnigraph stats`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import size, table


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    add_json(parser)


def _run(call: Call) -> int:
    with call.graph() as graph:
        snapshot = graph.snapshot(branch=call.args.branch)
        record = snapshot.record
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
    return call.show(document, *lines, *table(["type", "entities", "size"], rows))


COMMANDS = {"": Command(_run, _arguments, "  omnigraph stats ./library")}
