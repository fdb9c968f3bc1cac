"""`omnigraph profile …`."""

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError


def _list(call: Call) -> int:
    profiles = call.config.profiles
    documents = [_document(name, profile) for name, profile in sorted(profiles.items())]
    return call.show({"profiles": documents}, *(_line(each) for each in documents))


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which; else $OMNIGRAPH_PROFILE")
    add_json(parser)


def _show(call: Call) -> int:
    name = call.args.name or os.environ.get("OMNIGRAPH_PROFILE")
    if name is None:
        raise InvalidRequestError("which profile? name one, or set OMNIGRAPH_PROFILE")
    profile = call.config.profiles.get(name)
    if profile is None:
        raise InvalidRequestError(f"unknown profile '{name}' (not defined under `profiles:` in operator config)")
    document = _document(name, profile)
    return call.show(document, *(f"{key}: {value}" for key, value in document.items()))


def _document(name: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        **{key: profile[key] for key in ("server", "cluster", "store", "default_graph") if key in profile},
    }


def _line(document: Mapping[str, Any]) -> str:
    return " ".join([document["name"], *(f"{key}={value}" for key, value in document.items() if key != "name")])


COMMANDS = {
    "list": Command(_list, add_json, "  omnigraph profile list"),
    "show": Command(_show, _show_arguments, "  omnigraph profile show work"),
}
