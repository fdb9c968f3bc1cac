"""`omnigraph branch …`."""

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from omnigraph.api.documents import merge_conflict_document
from omnigraph.cli.arguments import add_earlier, add_json, add_prune_previous, add_uri, state_named
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import MergeConflictError
from omnigraph.model.conflict import MergeConflict


def _create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the new branch")
    parser.add_argument("--from", dest="source", metavar="BRANCH", help="the branch it starts from; main by default")
    parser.add_argument("--commit", metavar="ID", help="start at this commit instead")
    parser.add_argument("--tag", metavar="TAG", help="start at this tag instead")
    add_earlier(parser)
    add_uri(parser)
    add_json(parser)


def _create(call: Call) -> int:
    args = call.args
    name, source = args.name, args.source or args.commit or args.tag or "main"
    call.echo_target()
    with call.graph(read_only=False) as graph:
        graph.branches.create(name, source=args.source, actor=call.actor, **state_named(args))
        document = {"uri": graph.uri, "from": source, "name": name.strip(), "actor_id": call.actor}
    return call.show(document, f"created branch {name.strip()} from {source}")


def _list_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_json(parser)


def _list(call: Call) -> int:
    with call.graph() as graph:
        names = list(graph.branches)
    return call.show({"branches": names}, *names)


def _delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="which branch")
    add_uri(parser)
    add_json(parser)


def _delete(call: Call) -> int:
    name = call.args.name
    call.echo_target()
    call.consent()
    with call.graph(read_only=False) as graph:
        graph.branches.delete(name, actor=call.actor)
        document = {"uri": graph.uri, "name": name.strip(), "actor_id": call.actor}
    return call.show(document, f"deleted branch {name.strip()}")


def _merge_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the branch to bring in")
    parser.add_argument("--into", metavar="BRANCH", default="main", help="where to; main by default")
    parser.add_argument("--delete-branch", action="store_true", help="delete the source afterwards")
    add_prune_previous(parser)
    how = parser.add_argument_group("conflicts")
    how.add_argument("--preview", action="store_true", help="show what would happen and write nothing")
    how.add_argument("--by", choices=("row", "property"), default="row", help="what must differ to conflict")
    how.add_argument("--prefer", choices=("source", "target"), help="whose row to take where both changed it")
    how.add_argument("--resolve", metavar="FILE", help="a JSON file with a decision for each conflict")
    how.add_argument(
        "--base", metavar="COMMIT", help="compare both sides with this commit, where their own base is gone"
    )
    add_uri(parser)
    add_json(parser)


def _merge(call: Call) -> int:
    args = call.args
    if not args.preview:
        call.echo_target()
    with call.graph(read_only=args.preview) as graph:
        try:
            done = graph.merge(
                args.source,
                into=args.into,
                by=args.by,
                prefer=args.prefer,
                resolutions=args.resolve,
                base=args.base,
                preview=args.preview,
                delete_branch=args.delete_branch,
                actor=call.actor,
                prune_previous=args.prune_previous,
            )
        except MergeConflictError as refused:
            for conflict in refused.conflicts:
                call.note(_told(conflict))
            raise
    document: dict[str, Any] = {
        "source": done.source,
        "target": done.into,
        "outcome": done.outcome,
        "actor_id": call.actor,
    }
    if args.delete_branch:
        document["branch_deleted"] = done.branch_deleted
        if done.branch_delete_error is not None:
            document["branch_delete_error"] = done.branch_delete_error
            call.note(f"warning: merged, but could not delete branch '{done.source}': {done.branch_delete_error}")
    lines = [f"merged {done.source} into {done.into}: {done.outcome}"]
    if args.preview:
        document["preview"] = True
        document["conflicts"] = [merge_conflict_document(conflict, values=True) for conflict in done.conflicts]
        document["changes"] = {key: asdict(counts) for key, counts in done.changes.items()}
        lines = [f"would merge {done.source} into {done.into}: {done.outcome}"]
        lines += [
            f"{key}: {counts.inserted} inserted, {counts.updated} updated, {counts.deleted} deleted"
            for key, counts in done.changes.items()
        ]
        lines += [_told(conflict) for conflict in done.conflicts]
    if done.branch_deleted:
        lines.append(f"deleted branch {done.source}")
    call.show(document, *lines)
    return 1 if done.conflicts else 0


def _told(conflict: MergeConflict) -> str:
    return f"conflict: {conflict.message} ({conflict.kind}, {conflict.type_key})"


COMMANDS = {
    "create": Command(_create, _create_arguments, "  omnigraph branch create review --store ./library"),
    "list": Command(_list, _list_arguments, "  omnigraph branch list --store ./library --json"),
    "merge": Command(
        _merge,
        _merge_arguments,
        "  omnigraph branch merge review --store ./library --preview\n"
        "  omnigraph branch merge review --into main --store ./library --delete-branch",
    ),
    "delete": Command(_delete, _delete_arguments, "  omnigraph branch delete review --store ./library"),
}
