"""An agent's tools over a graph that a server has: what they tell is what they tell of an open one."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from omnigraph.api.graph import Graph
from omnigraph.client.connect import connect
from omnigraph.errors import NotFoundError, PermissionDeniedError
from omnigraph.mcp.tools import Permissions, Tools
from omnigraph.testing.served import RunningServer

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
