"""No possessive repetition, no atomic group: Python 3.11.0 to 3.11.4 matches them wrongly, without a word."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.sources import REPOSITORY, walk

FOLDERS = ("src", "tests", "benchmarks", "docs", ".ci")
# Escapes and sets of characters hold none; what is left repeats what was repeated, or is an atomic group.
LITERAL = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
FORBIDDEN = re.compile(r"[*+?}]\+|\(\?>")


def violations(root: Path) -> list[str]:
    """Every text in a module that imports `re` that would be a pattern of the forbidden kind."""
    return [
        f"{file.relative_to(root)}:{line}: {text!r}"
        for folder in FOLDERS
        for file in sorted((root / folder).rglob("*.py"))
        if file != Path(__file__)
        for line, text in _texts(walk(file))
        if FORBIDDEN.search(LITERAL.sub("x", text))
    ]


def _texts(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[int, str]]:
    if not any(_imports_re(node) for node in nodes):
        return
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value
            yield node.lineno, value if isinstance(value, str) else value.decode(errors="replace")


def _imports_re(node: ast.AST) -> bool:
    return (isinstance(node, ast.Import) and any(alias.name == "re" for alias in node.names)) or (
        isinstance(node, ast.ImportFrom) and node.module == "re"
    )


def test_no_pattern_repeats_possessively() -> None:
    assert violations(REPOSITORY) == []


@pytest.mark.parametrize(
    "pattern", ["a*+", "a++", "a?+", "a{2}+", "(?:a|b*?)*+", "(?>a|b)", r"\\++", "[^+]++"], ids=lambda pattern: pattern
)
def test_a_planted_pattern_is_found(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "planted.py").write_text(f"import re\nP = re.compile({pattern!r})", encoding="utf-8")

    assert violations(tmp_path) != []


@pytest.mark.parametrize("pattern", [r"a\++", r"[*+?]+", r"(a+)+", r"\*\+", r"[]*+]"], ids=lambda pattern: pattern)
def test_other_patterns_are_allowed(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "fine.py").write_text(f"import re\nP = re.compile({pattern!r})", encoding="utf-8")

    assert violations(tmp_path) == []
