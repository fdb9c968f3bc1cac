"""`omnigraph verify`."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import size

# What a finding means for the commits it names.
_LOSSES = {"content": "lost on", "history": "not told any more of", "nothing": "seen on"}


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="only this branch; all of them by default")
    parser.add_argument("--deep", action="store_true", help="also checksums, every value, and the rules of the schema")
    parser.add_argument(
        "--quarantine", action="store_true", help="put aside what cannot be read; nobody else may be writing"
    )
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    if args.quarantine:
        call.echo_target()
    report = verified(call, deep=args.deep, branch=args.branch, quarantine=args.quarantine)
    document = report.to_dict()
    call.show(document, *verified_lines(document))
    return 0 if report.is_whole or report.quarantined else 1


class _Report(Protocol):
    """What a verification tells; what makes it is imported only when it runs."""

    @property
    def is_whole(self) -> bool: ...

    @property
    def quarantined(self) -> Sequence[str]: ...

    def to_dict(self) -> dict[str, Any]: ...


def verified(call: Call, *, deep: bool, quarantine: bool, branch: str | None = None) -> _Report:
    """Look at a graph, also at one that is too damaged to be opened."""
    from omnigraph.api.open import verify  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return verify(call.storage(), deep=deep, branch=branch, quarantine=quarantine)


def verified_lines(document: Mapping[str, Any]) -> list[str]:
    """What was found, for people."""
    lines = []
    for each in document["findings"]:
        rows = f" ({each['rows']} rows)" if each["rows"] > 0 else ""
        lines.append(f"{each['kind']} {each['path']}{rows}: {each['problem']}")
        lines += [
            f"  {_LOSSES[each['loss']]} {at['branch']} #{at['number']}"
            + (f" ({at['commit']})" if at["commit"] is not None else "")
            + (f": {at['type_key']}" if at["type_key"] is not None else "")
            for at in each["commits"]
        ]
    if any(each["loss"] == "content" for each in document["findings"]):
        for line in document["readable"]:
            runs = (f"#{first}" if first == last else f"#{first} to #{last}" for first, last in line["numbers"])
            lines.append(f"whole on {line['branch']}: {', '.join(runs) or 'no commit'}")
    lines += [f"quarantined: {each}" for each in document["quarantined"]]
    lines += document["notes"]
    checked = document["checked"]
    whole = "everything is there" if not document["findings"] else f"{len(document['findings'])} findings"
    lines.append(
        f"{whole}: {checked['commits']} commits, {checked['versions']} versions, {checked['files']} files, "
        f"{size(checked['bytes'])}"
    )
    return lines


COMMANDS = {"": Command(_run, _arguments, "  omnigraph verify ./library --deep")}
