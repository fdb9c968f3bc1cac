"""`spark.read.format("omnigraph")` and `df.write.format("omnigraph")`."""
