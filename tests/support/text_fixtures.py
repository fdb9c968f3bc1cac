"""Text fixtures of a language: files in sections, and what of all that a module can say they show.

A fixture begins with a sentence that says what it shows; each section after it has a name, `=== name`, and a body.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

TITLE = "title"
_LETTERS_MIN = 6


@cache
def sections_of(path: Path) -> dict[str, str]:
    """The sections of a fixture by their names; its sentence is the one called `TITLE`."""
    title, *rest = path.read_text(encoding="utf-8").split("\n=== ")
    assert "\n" not in title, f"{path.name} does not begin with one sentence"
    sections = {TITLE: title}
    for part in rest:
        name, _, body = part.partition("\n")
        assert name not in sections, f"{path.name} has two sections {name}"
        sections[name] = body
    return sections


def expected_of(path: Path, *, given: Iterable[str]) -> dict[str, str]:
    """What a fixture expects: its sections but for those that are `given`."""
    expected = {name: body for name, body in sections_of(path).items() if name not in {TITLE, *given}}
    assert expected, f"{path.name} expects nothing"
    return expected


def sentences(module: Path) -> list[str]:
    """Every text with words in it that a module can say, with `*` for what it fills in."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    silent = {id(node) for part in ast.walk(tree) for node in _silent(part)}
    found = []
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.JoinedStr):
            template = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            template = node.value
        else:
            continue
        if " " in template.strip() and len(re.sub(r"[^a-z]", "", template)) >= _LETTERS_MIN:
            found.append(template.strip())
    return found


def unheard(module: Path, fixtures: Iterable[Path], sections: Iterable[str]) -> list[str]:
    """The sentences of a module that none of these sections of the fixtures shows."""
    wanted = set(sections)
    spoken = "\n".join(body for path in fixtures for name, body in sections_of(path).items() if name in wanted)
    return [each for each in sentences(module) if not re.search(".*?".join(map(re.escape, each.split("*"))), spoken)]


def _silent(node: ast.AST) -> list[ast.AST]:
    """Docstrings, forward references, and the parts of texts that are looked at as a whole."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return list(node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Source", "range"):
        return list(node.args)
    return []
