"""Query texts."""
