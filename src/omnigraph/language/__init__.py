"""Text to typed plan; touches no files."""
