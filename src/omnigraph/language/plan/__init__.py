"""Logical plans of typed queries, independent of engines and files."""
