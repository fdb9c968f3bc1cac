"""Runs plans in this process: reads over columns and adjacency in memory, writes over staged rows."""
