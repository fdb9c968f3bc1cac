"""`omnigraph branch …`."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omnigraph.api.choosing import decisions_to_make
from omnigraph.api.documents import merge_conflict_document
from omnigraph.cli.arguments import add_earlier, add_json, add_prune_previous, add_uri, state_named
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError, MergeConflictError
from omnigraph.model.conflict import MergeConflict

_VALUE_LETTERS_MAX = 60


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
        "--write-resolutions", metavar="FILE", help="write the conflicts there, to be decided and given to --resolve"
    )
    how.add_argument(
        "--base", metavar="COMMIT", help="compare both sides with this commit, where their own base is gone"
    )
    add_uri(parser)
    add_json(parser)


def _merge(call: Call) -> int:
    args = call.args
    if not args.preview:
        call.echo_target()
    if args.write_resolutions is not None and Path(args.write_resolutions).exists():
        raise InvalidRequestError(f"{args.write_resolutions} exists already; name a new file for the decisions")
    how = {"into": args.into, "by": args.by, "prefer": args.prefer, "resolutions": args.resolve, "base": args.base}
    with call.graph(read_only=args.preview) as graph:
        try:
            done = graph.merge(
                args.source,
                **how,
                preview=args.preview,
                delete_branch=args.delete_branch,
                actor=call.actor,
                prune_previous=args.prune_previous,
            )
        except MergeConflictError as refused:
            conflicts = refused.conflicts
            if call.scope.kind == "server":  # an error of a server's tells no values
                conflicts = graph.merge(args.source, **how, preview=True).conflicts
            for line in _describe(conflicts):
                call.note(line)
            _write_decisions(call, conflicts)
            raise
    _write_decisions(call, done.conflicts)
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
        lines += _describe(done.conflicts)
    if done.schema_steps or args.preview:
        document["schema_steps"] = [step.to_dict() for step in done.schema_steps]
        lines[1:1] = [f"schema: {step}" for step in done.schema_steps]
    if done.branch_deleted:
        lines.append(f"deleted branch {done.source}")
    call.show(document, *lines)
    return 1 if done.conflicts else 0


def _describe(conflicts: Iterable[MergeConflict]) -> list[str]:
    """Conflicts with what each side has."""
    lines = []
    for conflict in conflicts:
        lines.append(f"conflict: {conflict.message} ({conflict.kind}, {conflict.type_key})")
        sides = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
        there = {side: row for side, row in sides.items() if row is not None}
        if there and len(there) < len(sides):
            lines.append(f"  not there: {', '.join(side for side in sides if side not in there)}")
        for name in dict.fromkeys(name for row in there.values() for name in row):
            values = {side: json.dumps(row.get(name), ensure_ascii=False) for side, row in there.items()}
            if len(set(values.values())) > 1 or (len(there) == 1 and set(values.values()) != {"null"}):
                told = (f"{side} {_shortened(value)}" for side, value in values.items())
                lines.append(f"  {name}: {', '.join(told)}")
    return lines


def _shortened(text: str) -> str:
    return text if len(text) <= _VALUE_LETTERS_MAX else f"{text[:_VALUE_LETTERS_MAX]}…"


def _write_decisions(call: Call, conflicts: Iterable[MergeConflict]) -> None:
    """Write a file of decisions to be made, if that was asked for and there are any."""
    file, found = call.args.write_resolutions, list(conflicts)
    if file is None or not found:
        return
    document = decisions_to_make(found, call.args.by)
    with Path(file).open("x", encoding="utf-8") as out:
        out.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    count = sum(len(items) for items in document.values())
    call.note(f'wrote {count} to {file}: set each "decision", then merge with --resolve {file}')
    if count < len(found):
        call.note(f"not in it, for they name no entity: {len(found) - count} conflicts")


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
