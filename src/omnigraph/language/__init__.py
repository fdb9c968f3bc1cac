"""Schema and query languages: text to typed, logical plans. Reads no files."""
