"""Inspect and undo commits: `commit …`, `changes …`, `diff`, `log`, `blame`, `revert`."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omnigraph.cli.arguments import (
    add_branch,
    add_changes_filter,
    add_compared_states,
    add_engine,
    add_entity,
    add_json,
    add_positional_uri,
    add_uri,
    add_write_options,
    amount,
    write_options,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command, UsageError
from omnigraph.cli.render import atomic_file, cause_lines, change_lines, count_lines, image_lines, table
from omnigraph.cli.validation import commit_filter, compared_states
from omnigraph.model.commit import COMMIT_KINDS

_DIFF_EXAMPLES = """\
  omnigraph diff main review --store ./library --stat    # the changes on review since its merge base with main
  omnigraph diff main..review --store ./library          # all differences between the two heads
  omnigraph diff main@2026-01-31T12:00:00Z main --store ./library"""

_LOG_EXAMPLES = """\
  omnigraph log --store ./library             # the commits of main, newest first
  omnigraph log Book 0-1 --store ./library    # the history of one book"""

# -- commits -----------------------------------------------------------------------------------------------------------


def _list_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument(
        "--filter",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help=f"actor=NAME, or kind=KIND: {', '.join(COMMIT_KINDS)}; repeatable",
    )
    parser.add_argument("--since", metavar="TIME", help="only commits from this time on, like 2026-01-31T12:00:00Z")
    parser.add_argument("--until", metavar="TIME", help="only commits up to this time")
    parser.add_argument("--limit", metavar="N", type=amount, help="only the newest N")
    add_json(parser)


def _list(context: CommandContext) -> int:
    args = context.args
    chosen = commit_filter(args)
    with context.graph() as graph:
        commits = graph.commits.list(
            args.branch or "main",
            actor=chosen.get("actor"),
            kind=chosen.get("kind"),
            since=args.since,
            until=args.until,
            limit=args.limit,
        )
        documents = [commit.to_dict() for commit in commits]
    lines = [
        f"{document['graph_commit_id']} graph_branch={document['graph_branch'] or 'main'} "
        f"graph_manifest_version={document['graph_manifest_version']}"
        + (f" actor={document['actor_id']}" if document["actor_id"] is not None else "")
        + f" kind={document['kind']} time={document['created']}"
        + (f" message={json.dumps(document['message'], ensure_ascii=False)}" if document["message"] else "")
        for document in documents
    ]
    return context.show({"commits": documents}, *lines)


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="id of the commit")
    add_uri(parser)
    add_json(parser)


def _show(context: CommandContext) -> int:
    with context.graph() as graph:
        document = graph.commits.show(context.args.id).to_dict()
    lines = [
        f"{key}: {'' if value is None else value}".rstrip()
        for key, value in document.items()
        if key not in ("changes", "recovery")
    ]
    if document.get("recovery"):
        lines += _recovery_lines(document["recovery"])
    return context.show(document, *lines, *count_lines(document["changes"]))


def _recovery_lines(recovery: Mapping[str, Any]) -> list[str]:
    """Render the audit of an interrupted write."""
    who = recovery["recovery_for_actor"] or "(nobody named)"
    first = f"recovery: {recovery['recovery_kind']} of {recovery['operation']} {recovery['operation_id']} by {who}"
    tables = [
        f"  {table['table_key']}: version {table['from_version']} -> {table['to_version']}"
        for table in recovery["tables"]
    ]
    return [first, *tables]


def _changes_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="id of the commit")
    add_uri(parser)
    parser.add_argument("--limit", metavar="N", type=amount, help="page size")
    parser.add_argument("--page-token", metavar="TOKEN", help="only the page after this token")
    add_changes_filter(parser)
    add_json(parser)


def _changes(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        pages = []
        token = args.page_token
        while True:
            page = graph.commits.changes(
                args.id, limit=args.limit, page_token=token, kinds=args.kind, types=args.type, ops=args.op
            ).to_dict()
            pages.append(page)
            token = page.get("next_page_token")
            if token is None or args.page_token is not None:
                break
    if args.page_token is not None:
        document = pages[0]
    else:
        document = {"cause": pages[0]["cause"], "changes": [change for page in pages for change in page["changes"]]}
    lines = cause_lines(document["cause"])
    for change in document["changes"]:
        lines += change_lines(change)
    return context.show(document, *lines)


# -- the change feed ---------------------------------------------------------------------------------------------------


def _poll_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_branch(parser)
    position = parser.add_mutually_exclusive_group()
    position.add_argument("--cursor", metavar="CURSOR", help="cursor of an earlier poll")
    position.add_argument("--start", metavar="WHERE", help="now (the default), beginning, or after:COMMIT")
    parser.add_argument("--limit", metavar="N", type=amount, help="page size")
    add_changes_filter(parser)
    add_json(parser)


def _poll(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        document = graph.changes.drain(
            args.branch or "main",
            cursor=args.cursor,
            start=args.start,
            limit=args.limit,
            kinds=args.kind,
            types=args.type,
            ops=args.op,
        ).to_dict()
    lines = []
    for block in document["blocks"]:
        lines += cause_lines(block["cause"])
        for change in block["changes"]:
            lines += change_lines(change)
    lines = lines or ["(no new commits)"]
    return context.show(
        document, *lines, f"cursor: {document['cursor']}", f"caught_up: {str(document['caught_up']).lower()}"
    )


def _baseline_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="PATH", required=True, help="file for the exported state")
    add_uri(parser)
    add_branch(parser)
    add_changes_filter(parser)
    add_json(parser)


def _baseline(context: CommandContext) -> int:
    args = context.args
    path = Path(args.out)
    with context.graph() as graph:
        baseline = graph.changes.baseline(args.branch or "main", kinds=args.kind, types=args.type, ops=args.op)
        with atomic_file(path, "the baseline") as file:
            baseline.write(file)
        document = baseline.to_dict()
    return context.show(document, f"snapshot: {path}", *(f"{key}: {value}" for key, value in document.items()))


def _diff_arguments(parser: ArgumentParser) -> None:
    add_compared_states(parser)
    parser.add_argument("--stat", action="store_true", help="show only the numbers of changes")
    add_changes_filter(parser)
    add_engine(parser)
    add_uri(parser)
    add_json(parser)


def _diff(context: CommandContext) -> int:
    args = context.args
    with context.graph() as graph:
        older, newer, merge_base = compared_states(args, graph.branches)
        diff = graph.diff(
            older, newer, kinds=args.kind, types=args.type, ops=args.op, merge_base=merge_base, engine=args.engine
        )
        # Read the changes first: the numbers follow from them, while the other order would read them twice.
        changes = {"changes": diff.to_pylist()} if args.json and not args.stat else {}
        if not args.json and not args.stat:
            for change in diff:
                for line in change_lines(change.to_dict()):
                    context.print(line)
        stats = {key: asdict(counts) for key, counts in diff.stats.items()}
    commits = {"from_commit_id": diff.from_commit, "to_commit_id": diff.to_commit, "merge_base": merge_base}
    return context.show({**commits, "stats": stats, **changes}, *(count_lines(stats) or ["no differences"]))


# -- entities ----------------------------------------------------------------------------------------------------------


def _log_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", nargs="?", help="type of an entity; without, the log of commits")
    parser.add_argument("id", metavar="ID", nargs="?", help="id of the entity")
    add_branch(parser)
    parser.add_argument("--limit", metavar="N", type=amount, help="only the newest N")
    add_uri(parser)
    add_json(parser)


def _log(context: CommandContext) -> int:
    from omnigraph.branch.entity_change import cause_document  # noqa: PLC0415  (only for this command)

    args = context.args
    if args.type is None:
        return _commit_log(context)
    if args.id is None:
        raise UsageError("`log` takes the TYPE and ID of an entity, or neither for the log of commits")
    with context.graph() as graph:
        events = graph.log_of(args.type, args.id, branch=args.branch or "main", limit=args.limit)
    documents = []
    lines = []
    for event in events:
        before = None if event.before is None else event.before.to_dict()
        after = None if event.after is None else event.after.to_dict()
        cause = cause_document(event.entry)
        documents.append({"cause": cause, "op": event.op.value, "before": before, "after": after})
        lines += [*cause_lines(cause), event.op.value, *image_lines(before, after)]
    return context.show({"events": documents}, *(lines or ["(the entity never existed)"]))


def _commit_log(context: CommandContext) -> int:
    with context.graph() as graph:
        commits = graph.commits.list(context.args.branch or "main", limit=context.args.limit)
        documents = [commit.to_dict() for commit in commits]
    rows = [
        [
            document["graph_commit_id"],
            document["created"],
            document["actor_id"] or "",
            document["kind"],
            document["message"] or "",
        ]
        for document in documents
    ]
    lines = table(["commit", "time", "actor", "kind", "message"], rows, bold=context.has_colours)
    return context.show({"commits": documents}, *lines)


def _blame_arguments(parser: ArgumentParser) -> None:
    add_entity(parser)
    add_branch(parser)
    add_uri(parser)
    add_json(parser)


def _blame(context: CommandContext) -> int:
    from omnigraph.api.documents import commit_document  # noqa: PLC0415  (only for this command)

    args = context.args
    with context.graph() as graph:
        blame = graph.blame(args.type, args.id, branch=args.branch or "main")
    properties = sorted(blame.properties.items())
    document = {
        "id": blame.entity_id,
        "created": None if blame.created is None else commit_document(blame.created),
        "last": None if blame.last is None else commit_document(blame.last),
        "properties": {name: commit_document(commit) for name, commit in properties},
        "pruned": list(blame.pruned),
    }
    rows = [[name, commit.commit, commit.actor or "", commit.message or ""] for name, commit in properties]
    rows += [[name, "(pruned)", "", ""] for name in blame.pruned]
    return context.show(document, *table(["property", "commit", "actor", "message"], sorted(rows)))


def _revert_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("commit", metavar="COMMIT", help="commit to undo, or the first of a range")
    parser.add_argument("last", metavar="LAST", nargs="?", help="last commit of the range")
    add_branch(parser)
    add_write_options(parser, "message")
    add_uri(parser)
    add_json(parser)


def _revert(context: CommandContext) -> int:
    args = context.args
    context.echo_target()
    with context.graph(read_only=False) as graph:
        result = graph.revert(
            args.commit if args.last is None else (args.commit, args.last),
            branch=args.branch or "main",
            actor=context.actor,
            **write_options(args),
        )
    changes = {
        key: {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        for key, counts in result.changes.items()
    }
    document = {
        "branch": result.branch,
        "first": result.first,
        "last": result.last,
        "commit": result.commit,
        "changes": changes,
    }
    if result.commit is None:
        return context.show(document, "nothing to undo: the branch is already in that state")
    return context.show(document, f"reverted {result.first} on {result.branch}: {result.commit}", *count_lines(changes))


COMMANDS = {
    "commit list": Command(
        _list, _list_arguments, "  omnigraph commit list ./library --filter actor=omnigraph:recovery"
    ),
    "commit show": Command(_show, _show_arguments, "  omnigraph commit show 01J… --store ./library"),
    "commit changes": Command(
        _changes, _changes_arguments, "  omnigraph commit changes 01J… --store ./library --op delete"
    ),
    "changes poll": Command(_poll, _poll_arguments, "  omnigraph changes poll --store ./library --start beginning"),
    "changes baseline": Command(
        _baseline, _baseline_arguments, "  omnigraph changes baseline --store ./library --out state.jsonl"
    ),
    "diff": Command(_diff, _diff_arguments, _DIFF_EXAMPLES),
    "log": Command(_log, _log_arguments, _LOG_EXAMPLES),
    "blame": Command(_blame, _blame_arguments, "  omnigraph blame Book 0-1 --store ./library"),
    "revert": Command(_revert, _revert_arguments, "  omnigraph revert 01J… --store ./library --message 'wrong file'"),
}
