"""Bytes, records and tables."""
