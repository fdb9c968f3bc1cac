"""Algorithms over a whole graph, on frames of Spark's: vertices in, one value for each vertex out."""
