"""The rules of a schema: once as data (`rules`), and how they are checked over Arrow in this process.

values       of single rows: enums, ranges, patterns
uniqueness   of tuples over a type
ends         of edges: both nodes are there
degrees      of nodes: how many edges leave them
"""
