"""Loads from several processes at once, on one branch and on two: all land, once, and no rule is broken."""

import subprocess
import sys
from pathlib import Path

import omnigraph

SCHEMA = "node Person { name: String @key  email: String? @unique }\nedge Knows: Person -> Person"
SCRIPT = """
import sys, omnigraph
uri, branch, first, shared = sys.argv[1:]
with omnigraph.open(uri) as graph:
    for turn in range(2):
        names = [f"p{first}-{turn}-{n}" for n in range(20)]
        lines = [f'{{"type":"Person","data":{{"name":"{name}"}}}}' for name in names]
        lines += [f'{{"edge":"Knows","from":"{name}","to":"hub"}}' for name in names]
        graph.load("\\n".join(lines).encode(), mode="append", branch=branch, engine="local")
    try:
        line = f'{{"type":"Person","data":{{"name":"s{first}","email":"{shared}"}}}}'
        graph.load(line.encode(), mode="append", branch=branch, engine="local")
        print("won")
    except omnigraph.ConstraintError as error:
        print("lost", error)
"""


def test_loads_of_many_processes_all_land_and_keep_what_is_unique_unique(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.write(nodes={"Person": [{"name": "hub"}]})
        graph.branches.create("other")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, uri, branch, str(number), f"only@{branch}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, branch in enumerate(["main", "main", "other"])
    ]
    ended = [each.communicate(timeout=200) for each in running]
    assert [each.returncode for each in running] == [0] * 3, [err for _, err in ended]
    said = [out.split()[0] for out, _ in ended]
    assert (sorted(said[:2]), said[2]) == (["lost", "won"], "won")
    with omnigraph.open(uri) as graph:
        assert (graph.count("Person"), graph.count("Knows")) == (1 + 2 * 40 + 1, 2 * 40)
        assert (graph.count("Person", branch="other"), graph.count("Knows", branch="other")) == (1 + 40 + 1, 40)
