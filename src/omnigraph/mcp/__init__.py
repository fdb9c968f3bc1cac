"""A graph for agents, as tools of the Model Context Protocol (MCP).

tools       the tools, with plain documents as results
answers     limits the size of results
server      serves the tools over stdin and stdout; needs the package `mcp`
"""
