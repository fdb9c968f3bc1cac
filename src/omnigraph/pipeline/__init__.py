"""The engine on Spark: sessions, sources and sinks, export, analytics. The only package that imports pyspark."""
