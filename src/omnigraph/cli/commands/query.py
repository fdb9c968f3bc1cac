"""`omnigraph query`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_earlier, add_query, query_params, query_text, state_named
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.results import add_form, form_of, show_result
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph query --store ./library -e 'query q() { match { $b: Book } return { $b.title } limit 5 }'
  omnigraph query books_of --store ./library --query library.gq --params '{"a": "Le Guin"}' --format json"""


def _arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    where = parser.add_mutually_exclusive_group()
    add_branch(where)
    where.add_argument("--snapshot", dest="commit", metavar="COMMIT", help="read at this commit instead")
    where.add_argument("--tag", metavar="TAG", help="read at the commit of this tag instead")
    add_earlier(parser)
    add_form(parser)


def _run(call: Call) -> int:
    args = call.args
    form, params = form_of(call), query_params(args)
    if call.is_by_name:
        if args.tag is not None or args.at is not None or args.number is not None:
            raise InvalidRequestError("a stored query is asked at a branch or a commit; name no tag, number or time")
        with call.served(call.scope) as remote:
            document = remote.invoke(args.name, params, branch=args.branch, commit=args.commit, expect_mutation=False)
        show_result(call, document, form)
        return 0
    text = query_text(args)
    with call.asked() as graph:
        result = graph.query(text, params, name=args.name, **state_named(args))
        show_result(call, result.to_json(), form)
    return 0


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
