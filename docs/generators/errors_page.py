"""The page on errors, from the classes and from what the code raises."""

import ast
import inspect
from collections import defaultdict
from pathlib import Path

from docs.generators.docstrings import cell, split

from omnigraph import errors

_SOURCES = Path(errors.__file__).parent


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    classes: list[type[errors.GraphError]] = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.GraphError)
    ]
    classes.sort(key=lambda kind: inspect.getsourcelines(kind)[1])
    chart = inspect.cleandoc(errors.__doc__ or "").split("\n\n")[1]
    parts = [
        "# Errors",
        "This page is generated from `omnigraph.errors`; change that, then run `make docs`.",
        "Every error that a caller can meet is a `GraphError`. They are grouped by what the caller does next. `code` "
        "is stable and only ever added to; `message` is for people; `details` holds facts for programs.",
        "```text\n" + inspect.cleandoc(chart) + "\n```",
        "## Codes",
        _table(("error", "code", "means"), [(f"`{kind.__name__}`", f"`{kind.code}`", _said(kind)) for kind in classes]),
        "## Finer codes",
        "Some errors say more precisely what happened:",
        _table(
            ("code", "error"),
            [
                (f"`{code}`", ", ".join(f"`{name}`" for name in sorted(names)))
                for code, names in sorted(_finer({kind.__name__ for kind in classes}).items())
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _said(kind: type) -> str:
    return cell(split(kind.__doc__)[0])


def _finer(names: set[str]) -> dict[str, set[str]]:
    """The codes given where errors are made, each with the errors that have it."""
    files = [file for file in sorted(_SOURCES.rglob("*.py")) if not file.is_relative_to(_SOURCES / "testing")]
    found: dict[str, set[str]] = defaultdict(set)
    for file in files:
        module = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                for given in node.keywords:
                    value = given.value
                    code = constants.get(value.id) if isinstance(value, ast.Name) else getattr(value, "value", None)
                    if given.arg == "code" and isinstance(code, str):
                        found[code].add(node.func.id)
    return found


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
