"""Typed queries to logical plans. Plans know nothing of engines or files."""
