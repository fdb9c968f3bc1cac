"""Print how large the code is, and how many files one operation crosses.

    python -m tests.architecture.count_crossings [--option prune_previous]

Each operation runs once to warm up, so that imports and caches do not count, and once under a profiler.
"""

import argparse
import ast
import io
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import CodeType, FrameType

from fastapi.testclient import TestClient

import omnigraph
from omnigraph.server.app import create_app
from omnigraph.server.settings import ServerSettings

SOURCE = Path(omnigraph.__file__).parent
SCHEMA = """\
node Author { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32? }
edge Wrote: Author -> Book { year: I32? }
"""
INSERT = "query add($name: String) { insert Author { name: $name } }"
BOOKS_OF = "query books($name: String) { match { $a: Author { name: $name } $a wrote $b } return { $b.title } }"
# Prepares one run, by its number, and gives what is counted.
Operation = Callable[[int], AbstractContextManager[Callable[[], object]]]
_NO_CODE = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}
)


def modules() -> list[Path]:
    """List every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def count_code_lines(module: Path) -> int:
    """Count the lines of a module that are neither blank, comment nor docstring."""
    text = module.read_text(encoding="utf-8")
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstring_lines(text))


def docstring_lines(text: str) -> set[int]:
    """Find the lines of docstrings."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) if node.end_lineno is not None:
                found.update(range(node.lineno, node.end_lineno + 1))
    return found


def files_that_mention(name: str) -> list[Path]:
    """Find the modules in whose code, strings or docstrings a name stands."""
    return [module for module in modules() if name in module.read_text(encoding="utf-8")]


@contextmanager
def profiled() -> Iterator[set[CodeType]]:
    """Collect the functions of the package that run, in any thread that starts meanwhile or runs already."""
    called: set[CodeType] = set()
    ours = str(SOURCE)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ours):
            called.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def crossed(operation: Operation) -> tuple[int, int]:
    """Count the files and the functions that one run of an operation crosses, its preparation left out."""
    for run in range(2):
        with profiled() as called, operation(run) as act:  # threads that the preparation starts are profiled, too
            called.clear()
            act()
            found = set(called)
    return len({code.co_filename for code in found}), len(found)


def operations(graph: omnigraph.Graph, settings: ServerSettings) -> dict[str, Operation]:
    """Name the operations that are counted."""

    @contextmanager
    def insert(run: int) -> Iterator[Callable[[], object]]:
        yield lambda: graph.mutate(INSERT, {"name": f"insert {run}"})

    @contextmanager
    def query(_: int) -> Iterator[Callable[[], object]]:
        yield lambda: graph.query(BOOKS_OF, {"name": "insert 0"})

    @contextmanager
    def merge(run: int) -> Iterator[Callable[[], object]]:
        side = f"side-{run}"
        graph.branches.create(side)
        graph.write({"Author": [{"name": side}]}, branch=side)
        graph.write({"Author": [{"name": f"main {run}"}]})
        yield lambda: graph.merge(side)

    @contextmanager
    def load(run: int) -> Iterator[Callable[[], object]]:
        line = f'{{"type":"Book","data":{{"isbn":"{run}","title":"Kindred"}}}}'
        yield lambda: graph.load(line.encode(), mode="append", engine="local", format="jsonl")

    @contextmanager
    def mutate_over_http(run: int) -> Iterator[Callable[[], object]]:
        with TestClient(create_app(settings), base_url="http://testserver/graphs/library/") as client:
            body = {"query": INSERT, "params": {"name": f"http {run}"}}
            yield lambda: client.post("mutate", json=body).raise_for_status()

    return {"insert": insert, "query": query, "merge": merge, "load": load, "HTTP mutation": mutate_over_http}


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--option", default="prune_previous", help="a write option, to count who mentions it")
    option = parser.parse_args().option
    found = modules()
    print(f"modules: {len(found)}")
    print(f"code lines: {sum(map(count_code_lines, found))}")
    print(f"modules over 400 lines: {sum(len(each.read_text().splitlines()) > 400 for each in found)}")
    print(f"modules under 40 lines: {sum(len(each.read_text().splitlines()) < 40 for each in found)}")
    print(f"classes in the MRO of Graph: {len(omnigraph.Graph.__mro__)}")
    print(f"files that mention {option}: {len(files_that_mention(option))}")
    address = "memory://crossings"
    settings = ServerSettings(store=address, graph_id="library", unauthenticated=True)
    with omnigraph.init(address, SCHEMA, options=omnigraph.OpenOptions(auto_compact=False)) as graph:
        for name, operation in operations(graph, settings).items():
            files, functions = crossed(operation)
            print(f"{name}: {files} files, {functions} functions")


if __name__ == "__main__":
    main()
