"""Pruning: which commits are dropped, which are kept, and checksums of what is kept."""
