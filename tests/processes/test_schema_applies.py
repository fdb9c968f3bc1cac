"""Schemas that change while other processes write: every write lands once or is refused in words, and none is lost."""

import subprocess
import sys
from pathlib import Path

import omnigraph

BEFORE = "node Person { name: String @key  age: I32? }\nnode Robot { model: String @key }\n"
# Each of them keeps what the writers use.
STEPS = [
    BEFORE.replace("age: I32?", "age: I32?  note: String?"),
    BEFORE.replace("age: I32?", "age: I32?  note: String?") + "node Place { name: String @key }\n",
    BEFORE.replace("node Robot { model: String @key }\n", "") + "node Place { name: String @key }\n",
]
WRITER = """
import sys, omnigraph
uri, who = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with omnigraph.open(uri) as graph:
    for turn in range(12):
        for _ in range(50):
            try:
                graph.mutate(f'query q() {{ insert Person {{ name: "{who}-{turn}", age: {turn} }} }}')
            except omnigraph.ConflictError:
                continue  # typed, and says that another attempt may do
            print(f"{who}-{turn}", flush=True)
            break
        else:
            sys.exit("never landed")
"""


def test_writers_of_other_processes_lose_nothing_while_schemas_are_applied(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    with omnigraph.init(uri, BEFORE) as graph:
        running = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, uri, who],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for who in ("a", "b")
        ]
        for each in running:
            assert each.stdout is not None
            assert each.stdin is not None
            assert each.stdout.readline() == "ready\n"
            each.stdin.write("go\n")
            each.stdin.flush()
        applied = [graph.schema_apply(text) for text in STEPS]
        ended = [each.communicate(timeout=200) for each in running]
        assert [each.returncode for each in running] == [0, 0], [err for _, err in ended]

        said = {name for out, _ in ended for name in out.split()}
        assert len(said) == 24
        rows = graph.query("query q() { match { $p: Person } return { $p.name } }").to_pylist()
        assert sorted(row["p.name"] for row in rows) == sorted(said)
        assert all(each.applied for each in applied)
        assert graph.schema_text() == STEPS[-1]
        assert graph.verify().is_whole
