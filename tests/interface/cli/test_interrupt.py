"""Ctrl-C, pressed in a real process: code 130, and a graph as if nothing had begun."""

import json
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
    if process.returncode == 0:  # done before it heard of it, and says so
        with omnigraph.open(library) as graph:
            assert graph.count("Author") == PEOPLE
        return
    assert process.returncode == 130, said
    assert "interrupted: a write that was not acknowledged happened as a whole, or not at all" in said[-1]
    assert "Traceback" not in "".join(said)
    with omnigraph.open(library) as graph:
        assert graph.count("Author") == 0
        assert graph.mutate('query q() { insert Author { name: "Butler" } }').affected_nodes == 1
        assert graph.verify(deep=True).is_whole
    assert list(Path(library, "__recovery").glob("*")) == []


# A process that carries out commands one after the other, and presses Ctrl-C in each when it has come to a place.
PRESSING = """
import io, json, os, signal, sys, threading
from omnigraph.cli.main import main
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage.object_stores.local import LocalStore

get = LocalStore.get
left = 0

def press():
    os.killpg(0, signal.SIGINT)  # as a terminal does it: to everybody

def counting(store, path):
    global left
    left -= 1
    if left == 0:
        press()
    return get(store, path)

class Answer(io.TextIOWrapper):
    def write(self, text):
        press()
        return super().write(text)

LocalStore.get = counting
for place, words in json.loads(sys.argv[1]):
    kind, _, number = place.partition(" ")
    left = int(number) if kind == "read" else 0
    out = (Answer if kind == "answer" else io.TextIOWrapper)(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    point = Failpoint(place) if kind not in ("answer", "read") else Failpoint.LEASE_PUT
    with armed(point, press if kind not in ("answer", "read") else lambda: None):
        code = main(words, out=out, err=err)
    print(json.dumps([place, words[0], code, err.getvalue()]), flush=True)
"""
READ = "query q() { match { $a: Author } return { $a.name } }"
WRITE = 'query q() { insert Author { name: "Butler" } }'


def places(library: str, folder: Path) -> list[tuple[str, list[str]]]:
    """Commands, and where each of them is when Ctrl-C is pressed."""
    store = ["--store", library]
    (folder / "next.pg").write_text(
        (folder / "library.pg").read_text().replace("born: Date?", "born: Date? note: I32?")
    )
    (folder / "few.jsonl").write_text('{"type":"Author","data":{"name":"Lem"}}\n')
    return [
        ("read 2", ["query", *store, "-e", READ]),
        ("answer", ["query", *store, "-e", READ]),
        ("read 3", ["diff", "main", "review", *store]),
        ("read 2", ["changes", "baseline", *store, "--out", str(folder / "state.jsonl")]),
        ("read 2", ["export", library, "--out", str(folder / "all.jsonl")]),
        ("read 3", ["verify", library, "--deep"]),
        ("read 2", ["viz", "history", library, "--out", str(folder / "history.html")]),
        ("write.tables_staged", ["mutate", *store, "-e", WRITE]),
        ("write.tables_staged", ["load", library, "--data", str(folder / "few.jsonl"), "--mode", "append"]),
        ("write.tables_staged", ["branch", "merge", "review", *store]),
        ("write.tables_staged", ["schema", "apply", library, "--schema", str(folder / "next.pg")]),
        ("write.tables_staged", ["optimize", library]),
        ("prune.planned", ["prune", library, "--keep", "1"]),
        ("sweep.classified", ["sweep", library, "--older-than", "0s"]),
        ("sweep.roots_read", ["cleanup", library, "--keep", "1", "--confirm"]),
        ("answer", ["maintain", library, "--every", "1h", "--keep", "100"]),
    ]


def test_ctrl_c_in_any_long_command_ends_it_with_code_130_and_a_clean_graph(
    library: str, operator_home: Path, tmp_path: Path
) -> None:
    with omnigraph.open(library) as graph:
        graph.mutate('query q() { insert Author { name: "Le Guin" } }')
        graph.branches.create("review")
        graph.mutate('query q() { insert Author { name: "Lessing" } }', branch="review")
        graph.mutate('query q() { insert Author { name: "Shelley" } }')
    cases = [
        [place, [*words, *(["--engine", "local", "--quiet"] if words[0] == "load" else [])]]
        for place, words in places(library, tmp_path)
    ]
    ended = subprocess.run(
        [sys.executable, "-c", PRESSING, json.dumps(cases)],
        check=False,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert ended.returncode == 0, ended.stderr
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [(place, word, code) for place, word, code, _ in told] == [(place, words[0], 130) for place, words in cases]
    for _, _, _, said in told:
        assert said.endswith("\ninterrupted: a write that was not acknowledged happened as a whole, or not at all\n")
        assert "Traceback" not in said
    for name in ("state.jsonl", "all.jsonl", "history.html"):
        assert not (tmp_path / name).exists()
    with omnigraph.open(library) as graph:
        assert sorted(row["a.name"] for row in graph.query(READ)) == ["Le Guin", "Shelley"]
        author = graph.schema().node("Author")
        assert author is not None
        assert author.property_named("note") is None
        assert graph.mutate(WRITE).affected_nodes == 1
        assert graph.merge("review").outcome == "merged"
        assert graph.verify(deep=True).is_whole
    assert list(Path(library, "__recovery").glob("*")) == []
