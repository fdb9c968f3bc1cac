"""Graphs that a server has: the interface of an open graph, over HTTP.

connect    from an address to a graph
graph      the graph itself, put together from the modules below
tokens     which texts can be tokens
wire       requests, answers, and what is sent again when an answer is lost
failures   an answer that tells of an error, as that error
values     documents of answers, as the values an embedded graph returns
"""
