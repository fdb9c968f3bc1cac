"""A graph for agents, as tools of the Model Context Protocol.

tools       what an agent can ask for, as plain documents
answers     answers that stay within their bounds
searching   words looked for everywhere
serve       the tools offered over stdin and stdout; needs the package `mcp`
"""
