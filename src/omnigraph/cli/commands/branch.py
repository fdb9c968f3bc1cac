"""Create, list, merge and delete branches and tags: `branch …`, `tag …`."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omnigraph.api.documents import merge_conflict_document
from omnigraph.api.merge_options import decisions_to_make
from omnigraph.cli.arguments import (
    add_branch,
    add_earlier_state,
    add_json,
    add_uri,
    add_write_options,
    selected_point,
    write_options,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import count_lines
from omnigraph.cli.validation import check_resolutions_file
from omnigraph.errors import MergeConflictError
from omnigraph.model.conflict import MergeConflict

_VALUE_CHARACTERS_MAX = 60


def _list_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_json(parser)


# -- branches ----------------------------------------------------------------------------------------------------------


def _create_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the new branch")
    parser.add_argument("--from", dest="source", metavar="BRANCH", help="branch to start from; main by default")
    parser.add_argument("--commit", metavar="ID", help="start at this commit instead")
    parser.add_argument("--tag", metavar="TAG", help="start at this tag instead")
    add_earlier_state(parser)
    add_uri(parser)
    add_json(parser)


def _create(context: CommandContext) -> int:
    args = context.args
    name, source = args.name, args.source or args.commit or args.tag or "main"
    context.echo_target()
    with context.graph(read_only=False) as graph:
        graph.branches.create(name, source=args.source, actor=context.actor, **selected_point(args))
        document = {"uri": graph.uri, "from": source, "name": name.strip(), "actor_id": context.actor}
    return context.show(document, f"created branch {name.strip()} from {source}")


def _list(context: CommandContext) -> int:
    with context.graph() as graph:
        names = list(graph.branches)
    return context.show({"branches": names}, *names)


def _delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the branch")
    add_uri(parser)
    add_json(parser)


def _delete(context: CommandContext) -> int:
    name = context.args.name
    context.echo_target()
    context.require_consent()
    with context.graph(read_only=False) as graph:
        graph.branches.delete(name, actor=context.actor)
        document = {"uri": graph.uri, "name": name.strip(), "actor_id": context.actor}
    return context.show(document, f"deleted branch {name.strip()}")


def _merge_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="branch to merge")
    parser.add_argument("--into", metavar="BRANCH", default="main", help="target branch; main by default")
    parser.add_argument("--delete-branch", action="store_true", help="delete the source afterwards")
    add_write_options(parser)
    conflicts = parser.add_argument_group("conflicts")
    conflicts.add_argument("--preview", action="store_true", help="show the result and the conflicts; write nothing")
    conflicts.add_argument(
        "--by", choices=("row", "property"), default="row", help="granularity at which two changes conflict"
    )
    conflicts.add_argument("--prefer", choices=("source", "target"), help="side to take where both changed a row")
    conflicts.add_argument("--resolve", metavar="FILE", help="JSON file with a decision for each conflict")
    conflicts.add_argument(
        "--write-resolutions", metavar="FILE", help="write the conflicts to a JSON file to edit for --resolve"
    )
    conflicts.add_argument(
        "--base", metavar="COMMIT", help="merge base to compare with, if the original one was pruned"
    )
    add_uri(parser)
    add_json(parser)


def _merge(context: CommandContext) -> int:
    args = context.args
    if not args.preview:
        context.echo_target()
    check_resolutions_file(args)
    options = {"into": args.into, "by": args.by, "prefer": args.prefer, "resolutions": args.resolve, "base": args.base}
    with context.graph(read_only=args.preview) as graph:
        try:
            result = graph.merge(
                args.source,
                **options,
                preview=args.preview,
                delete_branch=args.delete_branch,
                actor=context.actor,
                **write_options(args),
            )
        except MergeConflictError as error:
            conflicts = error.conflicts
            if context.scope.kind == "server":  # the error of a server has no values
                conflicts = graph.merge(args.source, **options, preview=True).conflicts
            for line in _conflict_lines(conflicts):
                context.note(line)
            _write_decisions(context, conflicts)
            raise
    _write_decisions(context, result.conflicts)
    document: dict[str, Any] = {
        "source": result.source,
        "target": result.into,
        "outcome": result.outcome,
        "actor_id": context.actor,
    }
    if args.delete_branch:
        document["branch_deleted"] = result.branch_deleted
        if result.branch_delete_error is not None:
            document["branch_delete_error"] = result.branch_delete_error
            context.note(
                f"warning: merged, but could not delete branch '{result.source}': {result.branch_delete_error}"
            )
    lines = [f"merged {result.source} into {result.into}: {result.outcome}"]
    if args.preview:
        document["preview"] = True
        document["conflicts"] = [merge_conflict_document(conflict, values=True) for conflict in result.conflicts]
        document["changes"] = {key: asdict(counts) for key, counts in result.changes.items()}
        lines = [f"would merge {result.source} into {result.into}: {result.outcome}"]
        lines += count_lines(document["changes"])
        lines += _conflict_lines(result.conflicts)
    if result.schema_steps or args.preview:
        document["schema_steps"] = [step.to_dict() for step in result.schema_steps]
        lines[1:1] = [f"schema: {step}" for step in result.schema_steps]
    if result.branch_deleted:
        lines.append(f"deleted branch {result.source}")
    context.show(document, *lines)
    return 1 if result.conflicts else 0


def _conflict_lines(conflicts: Iterable[MergeConflict]) -> list[str]:
    """Render conflicts with the values of each side."""
    lines = []
    for conflict in conflicts:
        lines.append(f"conflict: {conflict.message} ({conflict.kind}, {conflict.type_key})")
        sides = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
        existing = {side: row for side, row in sides.items() if row is not None}
        if existing and len(existing) < len(sides):
            lines.append(f"  missing on: {', '.join(side for side in sides if side not in existing)}")
        for name in dict.fromkeys(name for row in existing.values() for name in row):
            values = {side: json.dumps(row.get(name), ensure_ascii=False) for side, row in existing.items()}
            if len(set(values.values())) > 1 or (len(existing) == 1 and set(values.values()) != {"null"}):
                shown = (f"{side} {_truncate(value)}" for side, value in values.items())
                lines.append(f"  {name}: {', '.join(shown)}")
    return lines


def _truncate(text: str) -> str:
    return text if len(text) <= _VALUE_CHARACTERS_MAX else f"{text[:_VALUE_CHARACTERS_MAX]}…"


def _write_decisions(context: CommandContext, conflicts: Iterable[MergeConflict]) -> None:
    """Write the conflicts to the file of `--write-resolutions`, if there are any."""
    file, undecided = context.args.write_resolutions, list(conflicts)
    if file is None or not undecided:
        return
    document = decisions_to_make(undecided, context.args.by)
    with Path(file).open("x", encoding="utf-8") as out:
        out.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    count = sum(len(items) for items in document.values())
    context.note(f'wrote {count} conflicts to {file}: set each "decision", then merge with --resolve {file}')
    if count < len(undecided):
        context.note(f"not in the file, because they name no entity: {len(undecided) - count} conflicts")


# -- tags --------------------------------------------------------------------------------------------------------------


def _create_tag_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the tag")
    add_branch(parser, help="tag the head of this branch; main by default")
    parser.add_argument("--commit", metavar="ID", help="tag this commit instead")
    add_earlier_state(parser)
    add_uri(parser)
    add_json(parser)


def _create_tag(context: CommandContext) -> int:
    args = context.args
    context.echo_target()
    with context.graph(read_only=False) as graph:
        tag = graph.tags.create(args.name, actor=context.actor, **selected_point(args))
    return context.show(asdict(tag), f"tagged {tag.commit} as {tag.name}")


def _list_tags(context: CommandContext) -> int:
    with context.graph() as graph:
        names = list(graph.tags)
    return context.show({"tags": names}, *names)


def _tag_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the tag")
    add_uri(parser)
    add_json(parser)


def _show_tag(context: CommandContext) -> int:
    with context.graph() as graph:
        document = asdict(graph.tags.read(context.args.name))
    return context.show(document, *(f"{key}: {value}" for key, value in document.items() if value is not None))


def _delete_tag(context: CommandContext) -> int:
    name = context.args.name
    context.echo_target()
    with context.graph(read_only=False) as graph:
        graph.tags.delete(name)
    return context.show({"name": name}, f"deleted tag {name}; its commit stays")


COMMANDS = {
    "branch create": Command(_create, _create_arguments, "  omnigraph branch create review --store ./library"),
    "branch list": Command(_list, _list_arguments, "  omnigraph branch list --store ./library --json"),
    "branch merge": Command(
        _merge,
        _merge_arguments,
        "  omnigraph branch merge review --store ./library --preview\n"
        "  omnigraph branch merge review --into main --store ./library --delete-branch",
    ),
    "branch delete": Command(_delete, _delete_arguments, "  omnigraph branch delete review --store ./library"),
    "tag create": Command(_create_tag, _create_tag_arguments, "  omnigraph tag create v1 --store ./library"),
    "tag list": Command(_list_tags, _list_arguments, "  omnigraph tag list --store ./library"),
    "tag show": Command(_show_tag, _tag_arguments, "  omnigraph tag show v1 --store ./library"),
    "tag delete": Command(_delete_tag, _tag_arguments, "  omnigraph tag delete v1 --store ./library"),
}
