"""An agent's tools over a graph that a server has: what they tell is what they tell of an open one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import Client, StdioServerParameters

from omnigraph.api.graph import Graph
from omnigraph.client.connect import connect
from omnigraph.errors import GraphError, NotFoundError, PermissionDeniedError
from omnigraph.mcp.tools import Permissions, Tools
from omnigraph.testing.server import RunningServer

BOOKS = "query books() { match { $b: Book } return { $b.isbn as isbn } order { isbn } }"


@pytest.fixture
def tools(library_server: RunningServer) -> Iterator[Tools]:
    """The tools of an agent that may write."""
    with connect(library_server.url, graph="library") as graph:
        yield Tools(cast("Graph", graph), Permissions(writes=True))


def asked(tools: Tools, query: str, *, branch: str | None = None, limit: int | None = None) -> dict[str, Any]:
    return tools.query(query, None, name=None, branch=branch, commit=None, limit=limit)


def test_everything_is_read_of_a_served_graph(tools: Tools) -> None:
    schema = tools.schema(None)
    assert "edge Wrote: Author -> Book" in schema["schema"]
    assert {each["name"] for each in schema["types"]} == {"Author", "Book", "Wrote"}
    rows = asked(tools, BOOKS, limit=1)
    assert (rows["rows"], rows["is_cut"]) == ([{"isbn": "0-1"}], True)
    near = tools.neighbourhood("Author", "Le Guin", edges=[], depth=1, limit=10, branch=None)
    assert [each["id"] for each in near["nodes"]] == ["Le Guin", "0-1"]
    found = tools.search("dispossessed", type=None, property=None, misspelled=False, limit=None, branch=None)
    assert [each["id"] for each in found["matches"]] == ["0-1"]
    assert "main" in tools.branches()["branches"]
    with pytest.raises(NotFoundError) as missing:
        asked(tools, BOOKS, branch="nothing")
    assert missing.value.code == "branch_not_found"


def test_a_proposal_on_a_served_graph_is_a_branch_of_its_own(tools: Tools) -> None:
    adds = 'query add() { insert Author { name: "Tiptree" } }'
    with pytest.raises(PermissionDeniedError):
        tools.propose(adds, None, name=None, branch="main", message=None)
    done = tools.propose(adds, None, name=None, branch="an-idea", message="missing")
    assert (done["branch_created"], done["affected_nodes"], done["changed"]) == (True, 1, True)
    told = tools.diff("main", "an-idea", types=["Author"], limit=None)
    assert told["stats"] == {"node:Author": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert [each["id"] for each in told["changes"]] == ["Tiptree"]


def test_a_proposal_that_fails_leaves_no_branch_on_the_server(tools: Tools) -> None:
    adds = 'query q() { insert Wrote { from: "Nobody", to: "0-1" } }'
    with pytest.raises(GraphError):
        tools.propose(adds, None, name=None, branch="in-vain", message=None)
    assert "in-vain" not in tools.branches()["branches"]


def test_the_command_takes_a_server_as_any_other(library_server: RunningServer, tmp_path: Path) -> None:
    words = ["-m", "omnigraph.cli", "mcp", "--server", library_server.url, "--graph", "library", "--allow-writes"]
    environment = os.environ | {"OMNIGRAPH_HOME": str(tmp_path)}

    async def say() -> tuple[object, object]:
        async with Client(StdioServerParameters(command=sys.executable, args=words, env=environment)) as client:
            adds = {"query": 'query q() { insert Author { name: "Russ" } }', "branch": "through-a-server"}
            done = await client.call_tool("propose", adds)
            refused = await client.call_tool("query", {"query": BOOKS, "branch": "nothing"})
            return done.structured_content, refused.structured_content

    done, refused = anyio.run(say)
    assert isinstance(done, dict) and isinstance(refused, dict)
    assert (done["branch"], done["affected_nodes"]) == ("through-a-server", 1)
    assert refused["code"] == "branch_not_found"
