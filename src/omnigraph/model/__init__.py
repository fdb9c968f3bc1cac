"""Values that describe a graph: schema, commits, conflicts. Standard library only."""
