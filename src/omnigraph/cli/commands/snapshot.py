"""`omnigraph snapshot`."""

from argparse import ArgumentParser

from omnigraph.api.documents import snapshot_document
from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    add_json(parser)


def _run(call: Call) -> int:
    with call.asked() as graph:
        document = snapshot_document(graph.snapshot(branch=call.args.branch).record)
    lines = [f"{key}: {document[key]}" for key in ("graph_branch", "graph_manifest_version", "internal_schema_version")]
    lines += [
        f"{each['entity_kind']} type '{each['type_name']}' published_dataset_version="
        f"{each['published_dataset_version']} native_dataset_branch={each['native_dataset_branch'] or 'main'} "
        f"entities={each['entity_count']}"
        for each in document["datasets"]
    ]
    return call.show(document, *lines)


COMMANDS = {"": Command(_run, _arguments, "  omnigraph snapshot ./library --branch review")}
