"""Whoever only asks a server needs what speaks to it, and nothing that reads tables."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.server.settings import ServerSettings

HEAVY = {"lance", "pyspark", "py4j", "pandas", "fastapi", "cedarpy"}
# What httpx loads for a command of its own.
OF_HTTPX = {"click", "rich"}
# What carries queries and writes out: the server's part.
ENGINE = (
    "omnigraph.execution.engine",
    "omnigraph.storage.tables",
    "omnigraph.transaction.write",
    "omnigraph.api.graph",
)
QUERY = "query q() { match { $a: Author } return { $a.name as name } }"
ASKING = f"""
import json, sys
import omnigraph
with omnigraph.connect(sys.argv[1], graph="library") as graph:
    rows = graph.query({QUERY!r}).to_pylist()
    graph.mutate('query q() {{ insert Author {{ name: "Lem" }} }}', branch="main")
    graph.branches.create("idea")
    graph.diff("main", "idea")
    graph.commits.list(limit=1)
    counted = graph.count("Author")
print(json.dumps([rows, counted, sorted(sys.modules)]))
"""
COMMAND = """
import json, sys
from omnigraph.cli.main import main
code = main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def address(serve: Callable[[ServerSettings], str], tmp_path: Path) -> str:
    """A server of one small graph."""
    where = str(tmp_path / "library")
    with omnigraph.init(where, "node Author { name: String @key }") as graph:
        graph.write(nodes={"Author": [{"name": "Le Guin"}]})
    return serve(ServerSettings(store=where, graph_id="library", unauthenticated=True))


def heavy(modules: list[str]) -> list[str]:
    return [name for name in modules if name.split(".")[0] in HEAVY or name.startswith(ENGINE)]


def test_a_client_reads_and_writes_without_the_engine(address: str) -> None:
    ended = subprocess.run([sys.executable, "-c", ASKING, address], capture_output=True, text=True, check=True)
    rows, counted, modules = json.loads(ended.stdout)
    assert (rows, counted) == ([{"name": "Le Guin"}], 2)
    assert heavy(modules) == []


def test_the_command_line_asks_a_server_without_the_engine(address: str, tmp_path: Path) -> None:
    words = ["query", "--server", address, "--graph", "library", "-e", QUERY, "--json"]
    environment = os.environ | {"OMNIGRAPH_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=True, env=environment
    )
    assert json.loads(ended.stdout)["rows"] == [{"name": "Le Guin"}]
    modules = json.loads(ended.stderr.splitlines()[-1])
    assert heavy(modules) == []
    assert {name.split(".")[0] for name in modules} & OF_HTTPX == set()
