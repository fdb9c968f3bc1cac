"""The page on HTTP, from the server's own API document and its flags."""

from collections.abc import Iterable, Iterator
from typing import Any

from omnigraph.server.app import create_app_over
from omnigraph.server.graphs import Authority
from omnigraph.server.errors import ERROR_TABLE
from omnigraph.server.graphs import Graphs
from omnigraph.server.main import build_parser
from omnigraph.server.settings import ServerSettings

_METHODS = ("get", "head", "post", "put", "delete")


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    graphs = Graphs({}, authority=Authority(is_open=True))
    document = create_app_over(ServerSettings(unauthenticated=True), graphs).openapi()
    parts = [
        "# HTTP",
        "This page is generated from the server's API document, which every server has at `/openapi.json`; change the "
        "server, then run `make docs`. How to run one: [the guide](../guides/server.md).",
        "## omnigraph-server",
        _table(("flag", "meaning"), _flags()),
        "## Operations",
    ]
    for tag in document["tags"]:
        rows = list(_operations(document, tag["name"]))
        if rows:
            parts += [
                f"### {tag['name'].capitalize()}",
                tag["description"],
                _table(("request", "body", "answer", ""), rows),
            ]
    parts += [
        "## Errors",
        "Every error has the body `ErrorOutput`: `error` is for people, `code` is stable, and details that say nothing "
        "are absent. `kind` and `reason` are the class and the code of [the error](errors.md) in Python.",
        _table(
            ("error", "status", "code"),
            [(f"`{row.error.__name__}`", str(row.status), f"`{row.code}`" if row.code else "–") for row in ERROR_TABLE],
        ),
        "The server itself answers 401 (`unauthorized`), 403 (`forbidden`), 405 (`method_not_allowed`), 408 "
        "(`request_timeout`), 413 and 415 (`bad_request`), and 429 (`too_many_requests`).",
        "## Bodies",
        "Members that may be left out have a question mark.",
    ]
    for name, schema in sorted(document["components"]["schemas"].items()):
        if schema.get("type") != "object" or "properties" not in schema:
            continue
        required = set(schema.get("required", ()))
        members = [
            (f"`{member}{'' if member in required else '?'}`", _shown(of), of.get("description", ""))
            for member, of in schema["properties"].items()
        ]
        parts += [f"### {name}", schema.get("description", ""), _table(("member", "type", ""), members)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _flags() -> Iterator[tuple[str, str]]:
    for action in build_parser()._actions:
        flag = max(action.option_strings, key=len)
        value = f" {action.metavar}" if action.metavar else f" {'|'.join(action.choices)}" if action.choices else ""
        yield f"`{flag}{value}`".replace("|", "\\|"), (action.help or "").replace("|", "\\|")


def _operations(document: dict[str, Any], tag: str) -> Iterator[tuple[str, str, str, str]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            operation = methods.get(method)
            if operation is None or operation["tags"][0] != tag:
                continue
            asked = [
                each["name"] + ("" if each.get("required") else "?")
                for each in operation.get("parameters", ())
                if each["in"] == "query"
            ]
            query = f"?{'&'.join(asked)}" if asked else ""
            note = operation["description"].replace("\n", " ")
            if operation.get("deprecated"):
                note = f"*Deprecated.* {note}"
            body = _content(operation.get("requestBody", {}))
            answer = _content(operation["responses"].get("200", {}))
            yield f"`{method.upper()} {path}{query}`", body, answer, note


def _content(of: dict[str, Any]) -> str:
    for media, content in of.get("content", {}).items():
        return _shown(content.get("schema", {})) if media == "create_app_over/json" else f"`{media}`"
    return ""


def _shown(schema: dict[str, Any]) -> str:
    """A type in few words, with a link where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_shown(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " \\| ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_shown(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_shown(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


def _table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
