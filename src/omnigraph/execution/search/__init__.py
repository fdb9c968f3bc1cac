"""Search inside patterns: words in texts, distances of vectors, and rankings fused."""
