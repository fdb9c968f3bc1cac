"""The Python sources of the repository, each parsed once per test process."""

import ast
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "omnigraph"


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file; callers must not change it."""
    return _parse(path.read_text(encoding="utf-8"))


def walk(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file's syntax tree."""
    return _walk(path.read_text(encoding="utf-8"))


# By content, not by path: tests plant several texts in one file.
@cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _walk(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parse(text)))
