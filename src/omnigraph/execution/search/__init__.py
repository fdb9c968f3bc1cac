"""Search inside patterns: full-text (inverted index, BM25, fuzzy), vectors, and fused rankings."""
