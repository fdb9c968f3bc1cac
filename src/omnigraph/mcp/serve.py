"""The tools of a graph, offered to an agent over stdin and stdout."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

from anyio.from_thread import check_cancelled
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field

from omnigraph import limits
from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.errors import GraphError
from omnigraph.mcp.door import Door, answer, told
from omnigraph.mcp.tools import Permissions, Tools
from omnigraph.version import VERSION

_ABOUT = """\
A typed property graph, versioned and branched as one. Ask for the schema first. Queries are in a language of their own:

    query of($city: String) {
      match { $p: Person  $p livesIn $c  $c.name = $city }
      return { $p.name as name, count($p) as n }
      order { n desc }
      limit 10
    }

A pattern binds nodes (`$p: Person { name: "Ada" }`) and follows edges (`$a knows $b`: the edge's name with a small
first letter; `$a knows{1,3} $b` for several hops; `$a $e: knows $b` for the edge's properties). Conditions stand on
lines of their own (`$p.age > 30`, `$p.name contains "x"`, `$p.age is not null`, `not { $p knows $_ }`). A bare node
variable in `return` is its id. Answers are cut where they grow long, and then say `is_cut`."""
_WRITING = """
Mutations are `insert Type { … }`, `update Type set { … } where …` and `delete Type where …`, inside a query like any
other; edges are inserted with `from` and `to`, the ids of their nodes. Propose them on a branch, then look at the diff
between main and it: people decide what is merged."""

Branch = Annotated[str | None, Field(description="a branch; main by default")]
Limit = Annotated[int | None, Field(description=f"how many at most, up to {limits.AGENT_ROWS_MAX}")]
Query = Annotated[str, Field(description="text in the query language: query name($param: Type) { … }")]
Params = Annotated[dict[str, Any] | None, Field(description="values of the query's parameters, by name without $")]
Name = Annotated[str | None, Field(description="which query, where the text has several")]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def server_of(graph: Graph, permissions: Permissions) -> MCPServer:
    """The tools of a graph as a server of the protocol.

    Args:
        graph (Graph): what it is about.
        permissions (Permissions): what an agent may do; tools it may not use are not there.

    Returns:
        MCPServer: ready to run.
    """
    instructions = _ABOUT + (_WRITING if permissions.writes else "")
    server = Door("omnigraph", instructions=instructions, version=VERSION, log_level="WARNING")
    # Each call runs in a thread of its own; one that its agent gave up ends at the next look.
    tools = Tools(graph, permissions, still_wanted=check_cancelled)
    _add_reads(server, tools)
    if permissions.writes:
        _add_writes(server, tools)
    else:
        _add_branch_list(server, tools)
    return server


def serve(graph: Graph, permissions: Permissions) -> None:
    """Answer an agent until it closes stdin."""
    server = server_of(graph, permissions)
    logging.getLogger("mcp").setLevel(logging.WARNING)  # a refused call is no news to the operator
    server.run("stdio")


def _add_reads(server: MCPServer, tools: Tools) -> None:
    def schema(branch: Branch = None) -> CallToolResult:
        """The node and edge types, their properties, how many entities of each there are, and the schema's text."""
        return _answer(lambda: tools.schema(branch))

    def query(
        *,
        query: Query,
        params: Params = None,
        name: Name = None,
        branch: Branch = None,
        commit: Annotated[str | None, Field(description="read at this commit instead")] = None,
        limit: Limit = None,
    ) -> CallToolResult:
        """Answer a query that reads. The rows are those of one commit, which is named in the answer."""
        return _answer(lambda: tools.query(query, params, name=name, branch=branch, commit=commit, limit=limit))

    def neighbourhood(
        *,
        type: Annotated[str, Field(description="the node's type")],
        id: Annotated[str, Field(description="the node's id; of a type with a key, the key")],
        edges: Annotated[list[str] | None, Field(description="only these edge types; all by default")] = None,
        depth: Annotated[int, Field(description=f"steps outwards, up to {limits.NEIGHBOURHOOD_DEPTH_MAX}")] = 1,
        limit: Annotated[
            int, Field(description=f"nodes at most, up to {limits.NEIGHBOURHOOD_NODES_MAX}")
        ] = limits.NEIGHBOURHOOD_NODES,
        branch: Branch = None,
    ) -> CallToolResult:
        """A node, the nodes around it, and the edges between them, in either direction."""
        return _answer(
            lambda: tools.neighbourhood(type, id, edges=edges or [], depth=depth, limit=limit, branch=branch)
        )

    def search(
        *,
        text: Annotated[str, Field(description="one or more words")],
        type: Annotated[str | None, Field(description="only in nodes of this type")] = None,
        property: Annotated[str | None, Field(description="only in this property")] = None,
        misspelled: Annotated[bool, Field(description="also words that differ by a letter or two")] = False,
        limit: Limit = None,
        branch: Branch = None,
    ) -> CallToolResult:
        """Nodes whose texts have one of these words, the best matches first."""
        return _answer(
            lambda: tools.search(text, type=type, property=property, misspelled=misspelled, limit=limit, branch=branch)
        )

    def diff(
        *,
        newer: Annotated[str, Field(description="a branch, tag or commit")],
        older: Annotated[str, Field(description="another; main by default")] = MAIN_BRANCH,
        types: Annotated[list[str] | None, Field(description="only these types; all by default")] = None,
        heads: Annotated[bool, Field(description="compare the two heads, not the branch with where it parted")] = False,
        limit: Limit = None,
    ) -> CallToolResult:
        """What a branch did since it parted from another, or what lies between any two tags or commits."""
        return _answer(lambda: tools.diff(older, newer, types=types or [], limit=limit, heads=heads))

    for tool in (schema, query, neighbourhood, search, diff):
        server.add_tool(tool, annotations=_READS)


def _add_branch_list(server: MCPServer, tools: Tools) -> None:
    def branch() -> CallToolResult:
        """The branches there are."""
        return _answer(tools.branches)

    server.add_tool(branch, annotations=_READS)


def _add_writes(server: MCPServer, tools: Tools) -> None:
    def branch(
        create: Annotated[str | None, Field(description="make a branch of this name first")] = None,
        source: Annotated[str, Field(description="where it starts; main by default")] = MAIN_BRANCH,
    ) -> CallToolResult:
        """The branches there are; with `create`, a new one."""
        return _answer(lambda: (tools.make_branch(create, source) if create is not None else {}) | tools.branches())

    def propose(
        *,
        query: Query,
        branch: Annotated[str, Field(description="where to write; made from main where it is not there")],
        params: Params = None,
        name: Name = None,
        message: Annotated[str | None, Field(description="why, for those who read the history")] = None,
    ) -> CallToolResult:
        """Insert, update or delete on a branch, as one commit or not at all. People look at it and merge it."""
        return _answer(lambda: tools.propose(query, params, name=name, branch=branch, message=message))

    server.add_tool(branch, annotations=_WRITES)
    server.add_tool(propose, annotations=ToolAnnotations(read_only_hint=False, open_world_hint=False))


def _answer(ask: Callable[[], dict[str, Any]]) -> CallToolResult:
    """What a tool says: its document; an error as what kind it is and why."""
    try:
        return answer(ask())
    except GraphError as error:
        return told(error)
