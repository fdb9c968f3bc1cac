"""What things cost, measured: `python -m benchmarks.NAME [--quick] [--json]`."""
