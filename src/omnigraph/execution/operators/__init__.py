"""Operators: each takes batches of rows from its input and passes batches on."""
