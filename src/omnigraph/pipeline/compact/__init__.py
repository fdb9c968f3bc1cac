"""Compaction of very large tables, on Spark."""
