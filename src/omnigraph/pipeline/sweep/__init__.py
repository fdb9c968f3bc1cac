"""Sweeps of very large graphs, read on Spark."""
