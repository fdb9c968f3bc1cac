"""How long the program takes to begin, beside what Python and the libraries below it take on the same machine.

Every figure is the median of whole processes, run in turn with what they are compared with, so that a busy machine is
busy for both.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import omnigraph
from benchmarks.report import Figure, Scale, compared, run

SCHEMA = "node Author { name: String @key }"
QUERY = "query q() { match { $a: Author } return { $a.name } }"
PROGRAM = "import sys; from omnigraph.cli.main import run; run()"
INTERPRETER_BAR, LIBRARIES_BAR = 6.0, 1.5


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    rounds = scale.pick(full=41, quick=9)
    try:
        with omnigraph.init(folder / "graph", SCHEMA) as graph:
            graph.mutate('query q() { insert Author { name: "Le Guin" } }')
        for words in (["--help"], ["version"]):
            ours, python = _in_turn([_program(*words), _python("pass")], rounds)
            yield compared(
                f"omnigraph {' '.join(words)}",
                ours,
                "ms",
                against="python -c pass",
                other=python,
                at_most=INTERPRETER_BAR,
            )
        words = ["query", "--store", str(folder / "graph"), "-e", QUERY]
        ours, libraries = _in_turn([_program(*words), _python("import lance, pyarrow")], rounds)
        yield compared(
            "omnigraph query, on a small graph",
            ours,
            "ms",
            against="python -c 'import lance, pyarrow'",
            other=libraries,
            at_most=LIBRARIES_BAR,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(*words: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *words]


def _python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def _in_turn(commands: Sequence[Sequence[str]], rounds: int) -> list[float]:
    """Milliseconds of each command; the first round, which fills the caches of the disk, is not counted."""
    taken: list[list[float]] = [[] for _ in commands]
    for number in range(rounds + 1):
        for at, command in enumerate(commands):
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
            if number:
                taken[at].append((time.perf_counter() - began) * 1e3)
    return [statistics.median(each) for each in taken]


if __name__ == "__main__":
    run("startup", measure)
