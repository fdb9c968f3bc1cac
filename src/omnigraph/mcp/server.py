"""An MCP server with the tools of a graph, over stdin and stdout."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

from anyio.from_thread import check_cancelled
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from omnigraph import limits
from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError
from omnigraph.mcp.answers import compact_json, error_document
from omnigraph.mcp.tools import Permissions, Tools
from omnigraph.version import VERSION

_INSTRUCTIONS = """\
A typed property graph, versioned and branched as one. Ask for the schema first. Queries have their own language:

    query of($city: String) {
      match { $p: Person  $p livesIn $c  $c.name = $city }
      return { $p.name as name, count($p) as n }
      order { n desc }
      limit 10
    }

A pattern binds nodes (`$p: Person { name: "Ada" }`) and follows edges (`$a knows $b`: the edge's name with a small
first letter; `$a knows{1,3} $b` for several hops; `$a $e: knows $b` for the edge's properties). Conditions are lines
of the pattern (`$p.age > 30`, `$p.name contains "x"`, `$p.age is not null`, `not { $p knows $_ }`). A bare node
variable in `return` is its id. Long answers are truncated, and then have `is_cut`."""
_WRITE_INSTRUCTIONS = """
Mutations are `insert Type { … }`, `update Type set { … } where …` and `delete Type where …`, inside a query like any
other; edges are inserted with `from` and `to`, the ids of their nodes. Propose them on a branch, then check the diff
between main and the branch: people decide what is merged."""

Branch = Annotated[str | None, Field(description="a branch; main by default")]
Limit = Annotated[int | None, Field(description=f"largest number of results, up to {limits.AGENT_ROWS_MAX}")]
Query = Annotated[str, Field(description="text in the query language: query name($param: Type) { … }")]
Params = Annotated[dict[str, Any] | None, Field(description="values of the query's parameters, by name without $")]
Name = Annotated[str | None, Field(description="name of the query, if the text has several")]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


class StrictMCPServer(MCPServer[Any]):
    """MCP server that refuses unknown tools and arguments with an error document, and ignores none."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Validate the arguments of a call, then run the tool."""
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            known_tools = ", ".join(sorted(tool.name for tool in self._tool_manager.list_tools()))
            return _error_result(NotFoundError(f"unknown tool '{name}'; use {known_tools}", code="tool_not_found"))
        known = tool.parameters.get("properties", {})
        # The base class ignores unknown arguments. A misspelled `branch` would read the wrong branch.
        if unknown := sorted(set(arguments) - set(known)):
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            return _error_result(InvalidRequestError(f"the tool '{name}' takes no argument '{unknown[0]}'; {takes}"))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise  # a bug of ours: it is logged, and reported without details
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            return _error_result(InvalidRequestError(f"the tool '{name}': {_describe_invalid(error.__cause__)}"))


def create_server(graph: Graph, permissions: Permissions) -> MCPServer:
    """Create a server with the tools that an agent may use on a graph."""
    instructions = _INSTRUCTIONS + (_WRITE_INSTRUCTIONS if permissions.writes else "")
    server = StrictMCPServer("omnigraph", instructions=instructions, version=VERSION, log_level="WARNING")
    # Each call runs in a thread of its own, and a cancelled one ends at the next check.
    tools = Tools(graph, permissions, raise_if_cancelled=check_cancelled)
    _add_reads(server, tools)
    if permissions.writes:
        _add_writes(server, tools)
    else:
        _add_branch_list(server, tools)
    return server


def serve(graph: Graph, permissions: Permissions) -> None:
    """Serve an agent until it closes stdin."""
    server = create_server(graph, permissions)
    logging.getLogger("mcp").setLevel(logging.WARNING)  # the operator need not see refused calls
    server.run("stdio")


def _add_reads(server: MCPServer, tools: Tools) -> None:
    def schema(branch: Branch = None) -> CallToolResult:
        """Show the node and edge types with their properties and entity counts, and the text of the schema."""
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
        """Run a read query. All rows are of one commit, which the answer names."""
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
        """Show a node, the nodes around it, and the edges between them, in both directions."""
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
        """Find nodes whose texts contain any of these words, best matches first."""
        return _answer(
            lambda: tools.search(text, type=type, property=property, misspelled=misspelled, limit=limit, branch=branch)
        )

    def diff(
        *,
        newer: Annotated[str, Field(description="a branch, tag or commit")],
        older: Annotated[str, Field(description="the state to compare with; main by default")] = MAIN_BRANCH,
        types: Annotated[list[str] | None, Field(description="only these types; all by default")] = None,
        heads: Annotated[bool, Field(description="compare the heads, instead of with the merge base")] = False,
        limit: Limit = None,
    ) -> CallToolResult:
        """Show the changes on a branch since its merge base with another, or between any two tags or commits."""
        return _answer(lambda: tools.diff(older, newer, types=types or [], limit=limit, heads=heads))

    for tool in (schema, query, neighbourhood, search, diff):
        server.add_tool(tool, annotations=_READS)


def _add_branch_list(server: MCPServer, tools: Tools) -> None:
    def branch() -> CallToolResult:
        """List the branches."""
        return _answer(tools.branches)

    server.add_tool(branch, annotations=_READS)


def _add_writes(server: MCPServer, tools: Tools) -> None:
    def branch(
        create: Annotated[str | None, Field(description="create a branch of this name first")] = None,
        source: Annotated[str, Field(description="branch to start from; main by default")] = MAIN_BRANCH,
    ) -> CallToolResult:
        """List the branches; with `create`, create one first."""
        return _answer(lambda: (tools.start_branch(create, source) if create is not None else {}) | tools.branches())

    def propose(
        *,
        query: Query,
        branch: Annotated[str, Field(description="branch to write to; created from main if missing")],
        params: Params = None,
        name: Name = None,
        message: Annotated[str | None, Field(description="commit message")] = None,
    ) -> CallToolResult:
        """Insert, update or delete on a branch, as one atomic commit. People review it and merge it."""
        return _answer(lambda: tools.propose(query, params, name=name, branch=branch, message=message))

    server.add_tool(branch, annotations=_WRITES)
    server.add_tool(propose, annotations=ToolAnnotations(read_only_hint=False, open_world_hint=False))


def _answer(run: Callable[[], dict[str, Any]]) -> CallToolResult:
    """Run a tool and return its document, or that of its error."""
    try:
        return _result(run())
    except GraphError as error:
        return _error_result(error)


def _error_result(error: GraphError) -> CallToolResult:
    return _result(error_document(error), is_error=True)


def _result(document: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    """Return a document both as text for models and as structured content for programs."""
    text = TextContent(type="text", text=compact_json(document))
    return CallToolResult(content=[text], structured_content=document, is_error=is_error)


def _describe_invalid(error: ValidationError) -> str:
    """Name every invalid argument and its problem, without the value, which may be long."""
    return "; ".join(
        f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    )
