"""Compare versions on Spark."""
