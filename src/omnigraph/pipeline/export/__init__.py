"""Files and streams out of a graph: JSON lines, Parquet, CSV and GraphML."""
