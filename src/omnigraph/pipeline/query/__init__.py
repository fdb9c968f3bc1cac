"""Queries on Spark: the second engine of the query language."""
