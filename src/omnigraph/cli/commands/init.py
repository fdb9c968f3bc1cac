"""`omnigraph init`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, read_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("uri", metavar="URI", help="where the graph shall be: a folder or s3://bucket/prefix")
    parser.add_argument("--schema", metavar="FILE", required=True, help="its schema")
    parser.add_argument(
        "--force",
        action="store_true",
        help="as scripts give it: what an init that never ended left behind is taken over with or without",
    )
    add_json(parser)


def _run(call: Call) -> int:
    from omnigraph.api.open import init  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)
    from omnigraph.cluster.owner import refuse_managed  # noqa: PLC0415  (loads obstore, and the help of a command no library: test_startup)

    text = read_text(call.args.schema, "the schema")
    refuse_managed(call.scope.address, "declare the graph in its cluster.yaml")
    with init(call.scope.address, text, actor=call.config.actor) as graph:
        first = graph.snapshot()
    made = {"uri": call.args.uri, "branch": first.branch, "graph_commit_id": first.commit}
    return call.show(made, f"initialized {call.args.uri}")


COMMANDS = {"": Command(_run, _arguments, examples="  omnigraph init ./library --schema library.pg")}
