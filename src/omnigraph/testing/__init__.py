"""Tools for testing applications that use Omnigraph.

`stores`: object stores that count, delay or fail requests; `faults`: which one fails, and how. `clock`: set by hand.
`model`, `merge_model`, `ancestor_model`: a graph as plain dictionaries, to compare with. `invariants`: what holds for
every graph, whatever happened to it. `server`: `omnigraph-server` in a process of its own.
"""
