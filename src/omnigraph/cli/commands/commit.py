"""`omnigraph commit …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_changes_filter, add_json, add_positional_uri, add_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.changes import cause_lines, change_lines
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import COMMIT_KINDS


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
    parser.add_argument("--limit", metavar="N", type=amount, help="the newest N only")
    add_json(parser)


def _list(call: Call) -> int:
    args = call.args
    chosen: dict[str, str] = {}
    for each in args.filter:
        key, equals, value = each.partition("=")
        if not equals or key not in ("actor", "kind"):
            raise InvalidRequestError(f"--filter takes actor=NAME or kind=KIND, not '{each}'")
        chosen[key] = value
    with call.graph() as graph:
        found = graph.commits.list(
            args.branch or "main",
            actor=chosen.get("actor"),
            kind=chosen.get("kind"),
            since=args.since,
            until=args.until,
            limit=args.limit,
        )
        documents = [each.to_dict() for each in found]
    lines = [
        f"{each['graph_commit_id']} graph_branch={each['graph_branch'] or 'main'} "
        f"graph_manifest_version={each['graph_manifest_version']}"
        + (f" actor={each['actor_id']}" if each["actor_id"] is not None else "")
        for each in documents
    ]
    return call.show({"commits": documents}, *lines)


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the commit")
    add_uri(parser)
    add_json(parser)


def _show(call: Call) -> int:
    with call.graph() as graph:
        document = graph.commits.show(call.args.id).to_dict()
    return call.show(
        document, *(f"{key}: {'' if value is None else value}".rstrip() for key, value in document.items())
    )


def _changes_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the commit")
    add_uri(parser)
    parser.add_argument("--limit", metavar="N", type=amount, help="changes in a page")
    parser.add_argument("--page-token", metavar="TOKEN", help="one page only: the one after this token")
    add_changes_filter(parser)
    add_json(parser)


def _changes(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
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
        document = {"cause": pages[0]["cause"], "changes": [each for page in pages for each in page["changes"]]}
    lines = cause_lines(document["cause"])
    for change in document["changes"]:
        lines += change_lines(change)
    return call.show(document, *lines)


COMMANDS = {
    "list": Command(_list, _list_arguments, "  omnigraph commit list ./library --filter actor=omnigraph:recovery"),
    "show": Command(_show, _show_arguments, "  omnigraph commit show 01J… --store ./library"),
    "changes": Command(_changes, _changes_arguments, "  omnigraph commit changes 01J… --store ./library --op delete"),
}
