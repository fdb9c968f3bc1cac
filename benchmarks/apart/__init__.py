"""What benchmarks measure in processes of their own."""
