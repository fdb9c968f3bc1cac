"""The protocol's server, with mistakes in a call told as every other error is: what kind it is, and what to do."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, InputRequiredResult, TextContent
from pydantic import ValidationError

from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError
from omnigraph.mcp.answers import compact, error_document


class Door(MCPServer[Any]):
    """Tools behind a door that says what is wrong with a knock."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """What a tool answers; or, of a call that none of them takes, what would be one.

        Args:
            name (str): of the tool.
            arguments (dict[str, Any]): as the agent gave them.
            context (Context[Any, Any] | None): of the request.

        Returns:
            CallToolResult | InputRequiredResult: the answer.
        """
        tool = self._tool_manager.get_tool(name)
        if tool is None:
            there = ", ".join(sorted(each.name for each in self._tool_manager.list_tools()))
            return told(NotFoundError(f"there is no tool '{name}'; there are {there}", code="tool_not_found"))
        known = tool.parameters.get("properties", {})
        # The package passes over what it does not know. A misspelled `branch` would read another one than was meant.
        if unknown := sorted(set(arguments) - set(known)):
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            return told(InvalidRequestError(f"the tool '{name}' takes no argument '{unknown[0]}'; {takes}"))
        try:
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError:
            raise  # a fault of ours: it is logged, and told without its insides
        except ToolError as refused:
            if not isinstance(refused.__cause__, ValidationError):
                raise
            return told(InvalidRequestError(f"the tool '{name}': {_mistakes(refused.__cause__)}"))


def told(error: GraphError) -> CallToolResult:
    """An error as an answer."""
    return answer(error_document(error), is_error=True)


def answer(document: dict[str, Any], *, is_error: bool = False) -> CallToolResult:
    """A document as an answer, for programs and for models."""
    text = TextContent(type="text", text=compact(document))
    return CallToolResult(content=[text], structured_content=document, is_error=is_error)


def _mistakes(fault: ValidationError) -> str:
    """Every argument that is wrong, and how; what was given is not repeated, it may be long."""
    return "; ".join(
        f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}"
        for each in fault.errors(include_url=False, include_input=False, include_context=False)
    )
