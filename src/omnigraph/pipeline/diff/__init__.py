"""Differences between versions, told on Spark."""
