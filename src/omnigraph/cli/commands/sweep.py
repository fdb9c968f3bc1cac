"""`omnigraph sweep`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, add_positional_uri, add_where, duration_s
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import size


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--older-than", metavar="AGE", type=duration_s, help="younger files stay; 10m by default")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted, and why")
    add_where(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    if not args.dry_run:
        call.echo_target()
        call.consent()
    with call.graph(read_only=args.dry_run) as graph:
        document = graph.sweep(older_than=args.older_than, dry_run=args.dry_run, engine=args.engine).to_dict()
    lines = []
    if args.dry_run:
        lines = [f"{each['verdict']:<13} {each['path']}  ({each['reason']})" for each in document["worklist"]]
    verb = "would remove" if args.dry_run else "removed"
    lines += [
        f"{kind}: {verb} {count} files, {size(document['bytes_by_kind'][kind])}"
        for kind, count in sorted(document["files_by_kind"].items())
    ]
    lines.append(
        f"{verb} {document['files_removed']} files, {size(document['bytes_removed'])}; kept {document['files_kept']} "
        f"files, {size(document['bytes_kept'])}; spared {document['files_spared']} young ones"
    )
    lines += [f"could not tell about {path}" for path in document["indeterminate"]]
    lines += [f"files are held by a write that has not ended: {write}" for write in document["held_by"]]
    lines += [f"could not delete {path}: {error}" for path, error in document["errors"].items()]
    call.show(document, *lines)
    return 1 if document["errors"] else 0


COMMANDS = {"": Command(_run, _arguments, "  omnigraph sweep ./library --dry-run\n  omnigraph sweep ./library")}
