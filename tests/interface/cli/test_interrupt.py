"""Ctrl-C, pressed in a real process: code 130, and a graph as if nothing had begun."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph

PEOPLE = 400_000
PROGRAM = [sys.executable, "-m", "omnigraph.cli"]


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    """A file that takes a while to load."""
    path = tmp_path / "crowd.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"type":"Author","data":{{"name":"author {at}"}}}}\n' for at in range(PEOPLE))
    return path


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_load_that_is_interrupted_leaves_a_clean_graph(library: str, crowd: Path, engine: str) -> None:
    words = ["load", library, "--data", str(crowd), "--mode", "append", "--engine", engine]
    # As a terminal does it: the signal goes to the program and to everything that it started.
    with subprocess.Popen([*PROGRAM, *words], stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while " rows, " not in said[-1]:
            said.append(process.stderr.readline())
            assert said[-1], said
        os.killpg(process.pid, signal.SIGINT)
        said.append(process.stderr.read())
    assert process.returncode == 130, said
    assert "interrupted: nothing that was not acknowledged is visible" in said[-1]
    assert "Traceback" not in "".join(said)
    with omnigraph.open(library) as graph:
        assert graph.count("Author") == 0
        assert graph.mutate('query q() { insert Author { name: "Butler" } }').affected_nodes == 1
        assert graph.verify(deep=True).is_whole
    assert list(Path(library, "__recovery").glob("*")) == []
