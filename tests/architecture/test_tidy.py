"""Vocabulary and size: names and docstrings use the words of the field, and no module is too long to read at once."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.sources import SOURCE, walk

MODULE_LINES_MAX = 400
BANNED_NAME_PARTS = frozenset(
    {"anew", "asked", "nobody", "said", "somebody", "told", "understood", "whoever", "whereabouts"}
)
BANNED_PHRASES = re.compile(
    r"\b(anew|asked|is none of|is no [a-z]+ (?:of|that)|no more|nobody|of old|said|somebody|told|under way|whoever)\b",
    re.IGNORECASE,
)
# Words that add nothing to a name or a type.
EMPTY_WORDS = frozenset(
    re.findall(r"\w+", "a an and in is it its of or that the them they this to what where which whose")
)
ENTRY = re.compile(r"^ {4,8}(\*{0,2}\w+)(?: \(([^)]*)\))?: (.+)$")
Found = Iterator[tuple[int, str]]


def banned_names(path: Path) -> Found:
    """Identifiers with a banned word in them."""
    for node in walk(path):
        name = getattr(node, "name", None) or getattr(node, "arg", None) or getattr(node, "attr", None)
        if isinstance(node, ast.Name):
            name = node.id
        if isinstance(name, str) and BANNED_NAME_PARTS & _name_parts(name):
            yield getattr(node, "lineno", 1), f"the name {name}"


def _name_parts(name: str) -> set[str]:
    return set(re.split(r"[_\W]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def loops_over_each(path: Path) -> Found:
    """Loops whose variable is called `each`."""
    for node in walk(path):
        if isinstance(node, ast.For | ast.comprehension | ast.AsyncFor):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name) and target.id == "each":
                    yield target.lineno, "a loop variable called each"


def banned_phrases(path: Path) -> Found:
    """First lines of docstrings in the old words."""
    for node, docstring in _docstrings(path):
        first = docstring.strip().partition("\n")[0]
        if phrase := BANNED_PHRASES.search(first):
            yield getattr(node, "lineno", 1), f"a docstring that says {phrase[0]!r}: {first}"


def empty_entries(path: Path) -> Found:
    """Entries of docstrings that repeat the name or the type of what they describe."""
    for node, docstring in _docstrings(path):
        types = _annotations(node)
        lines = docstring.split("\n")
        for above, line in zip(lines, [*lines[1:], ""], strict=True):
            entry = ENTRY.match(above)
            if entry is None or re.match(r"^ {9,}\S", line):
                continue
            name, kind, text = (
                entry.group(1).strip("*"),
                entry.group(2) or types.get(entry.group(1), ""),
                entry.group(3),
            )
            if _words(text) <= _words(f"{name} {kind}") | EMPTY_WORDS:
                yield getattr(node, "lineno", 1), f"an entry that says nothing: {above.strip()}"


def _docstrings(path: Path) -> Iterator[tuple[ast.AST, str]]:
    for node in walk(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield node, docstring


def _annotations(node: ast.AST) -> dict[str, str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        return {
            argument.arg: ast.unparse(argument.annotation)
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if argument.annotation
        }
    if isinstance(node, ast.ClassDef):
        return {
            field.target.id: ast.unparse(field.annotation)
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
    return {}


def _words(text: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", spaced.lower())}


def long_modules(path: Path) -> Found:
    """Modules that nobody reads in one sitting."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MODULE_LINES_MAX:
        yield 1, f"{lines} lines, {MODULE_LINES_MAX} at the most"


RULES = (banned_names, loops_over_each, banned_phrases, empty_entries, long_modules)


def violations(root: Path) -> list[str]:
    """Every violation in the sources below `root`."""
    return [
        f"{path.relative_to(root)}:{line}: {what}"
        for path in sorted(root.rglob("*.py"))
        for rule in RULES
        for line, what in rule(path)
    ]


def test_the_sources_use_the_words_of_the_field() -> None:
    assert violations(SOURCE) == []


@pytest.mark.parametrize(
    "text",
    [
        "def told():\n    pass\n",
        "def tell(asked):\n    pass\n",
        "class WhoeverIsNext:\n    pass\n",
        "for each in ():\n    pass\n",
        "x = [each for each in ()]\n",
        '"""Make it anew."""\n',
        'def f():\n    """Whoever waits, no more."""\n',
        'def f(branch):\n    """Read it.\n\n    Args:\n        branch: the branch.\n    """\n',
        'def f(at: Path):\n    """Read it.\n\n    Args:\n        at: where.\n    """\n',
        "\n" * (MODULE_LINES_MAX + 1),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "planted.py").write_text(text, encoding="utf-8")

    assert violations(tmp_path) != []


def test_informative_entries_and_names_are_allowed(tmp_path: Path) -> None:
    text = 'def read(branch):\n    """Read a branch.\n\n    Args:\n        branch: must exist.\n    """\n'
    (tmp_path / "fine.py").write_text(text, encoding="utf-8")

    assert violations(tmp_path) == []


def test_adding_a_write_option_touches_at_most_eight_files() -> None:
    """Held against the newest one: its value travels inside of `WriteOptions`, and is named only where it matters."""
    naming = [path for path in SOURCE.rglob("*.py") if re.search(r"\bprune_previous\b", path.read_text())]
    assert len(naming) <= 8, naming
