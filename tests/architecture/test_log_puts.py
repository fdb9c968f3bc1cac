"""One module puts log entries. Whatever else writes cannot even say where they lie."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.sources import SOURCE, parse

# The log itself, and the module that knows where everything lies.
LOG = Path("transaction/log.py")
# Reads them, and puts nothing.
READER = Path("transaction/log_reader.py")
PATHS = Path("storage/paths.py")

# The path of one entry, of its name, of the hint: needed by nobody but the log.
PLACES = frozenset({"entry", "entry_name", "hint"})
# Folders that hold entries: others may list them.
FOLDERS = frozenset({"log_folder", "LOGS"})
PUTS = frozenset({"put", "put_if_absent", "copy"})
LITERAL = "__manifest/log"


def violations(root: Path) -> list[str]:
    """What in the sources below `root` could put a log entry and is not the log."""
    return [
        f"{file.relative_to(root)}:{line}: {what}"
        for file in sorted(root.rglob("*.py"))
        if file.relative_to(root) not in (LOG, READER, PATHS)
        for line, what in _in_tree(parse(file))
    ]


def _in_tree(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and LITERAL in node.value:
            yield node.lineno, f"spells out {LITERAL}"
        if isinstance(node, ast.ImportFrom) and node.module == "omnigraph.storage.paths":
            for alias in node.names:
                if alias.name in PLACES | FOLDERS | {"*"}:
                    # Under a name of its own it would not be recognised below.
                    yield node.lineno, f"imports {alias.name} from paths"
        if _of_paths(node) in PLACES:
            yield getattr(node, "lineno", 0), f"uses paths.{_of_paths(node)}"
        if isinstance(node, ast.FunctionDef):
            yield from _puts_beside_a_folder(node)


def _puts_beside_a_folder(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    inside = list(ast.walk(function))
    if not any(_of_paths(node) in FOLDERS for node in inside):
        return
    for node in inside:
        if isinstance(node, ast.Attribute) and node.attr in PUTS:
            yield node.lineno, f"{function.name} knows a folder of entries and uses {node.attr}"


def _of_paths(node: ast.AST) -> str | None:
    """The name looked up on the module `paths`, also by `getattr`."""
    if isinstance(node, ast.Attribute) and _is_paths(node.value):
        return node.attr
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and _is_paths(node.args[0]):
        name = node.args[1]
        return str(name.value) if isinstance(name, ast.Constant) else "entry"
    return None


def _is_paths(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "paths") or (
        isinstance(node, ast.Attribute) and node.attr == "paths"
    )


def test_nobody_but_the_log_puts_entries() -> None:
    assert violations(SOURCE) == []


def test_the_log_puts_entries_in_one_place() -> None:
    tree = parse(SOURCE / LOG)
    conditional = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "put_if_absent"
    ]
    assert conditional == ["_put_or_find"]


@pytest.mark.parametrize(
    "planted",
    [
        "from omnigraph.storage import paths\ndef f(store): store.put_if_absent(paths.entry('main', 2), b'')",
        "from omnigraph.storage import paths\ndef f(store):\n    at = paths.entry('main', 2)\n    store.put(at, b'')",
        "from omnigraph.storage import paths\ndef f(store): store.put(paths.log_folder('main') + 'x.json', b'')",
        "from omnigraph.storage import paths\ndef f(store): store.copy('a', f'{paths.LOGS}main/x')",
        "from omnigraph.storage.paths import entry as place\ndef f(store): store.put(place('main', 2), b'')",
        "from omnigraph.storage import paths\ndef f(store): store.put(getattr(paths, 'entry')('main', 2), b'')",
        "import omnigraph.storage.paths\ndef f(store): store.put(omnigraph.storage.paths.entry('main', 2), b'')",
        "def f(store): store.put('__manifest/log/main/x.json', b'')",
        "from omnigraph.storage import paths\ndef f(store): store.put(paths.hint('main'), b'7')",
    ],
    ids=["conditional", "plain", "folder", "copy", "renamed", "by-name", "whole-path", "literal", "hint"],
)
def test_a_planted_put_is_found(tmp_path: Path, planted: str) -> None:
    (tmp_path / "planted.py").write_text(planted, encoding="utf-8")
    assert violations(tmp_path) != []


def test_listing_the_logs_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(
        "from omnigraph.storage import paths\n"
        "def f(store): return list(store.list(paths.log_folder('main')))\n"
        "def g(store): store.put(paths.change_file('x'), b'')\n",
        encoding="utf-8",
    )
    assert violations(tmp_path) == []


def test_the_reader_of_the_log_puts_nothing() -> None:
    calls = [node.func for node in ast.walk(parse(SOURCE / READER)) if isinstance(node, ast.Call)]

    assert not [call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr in PUTS]
