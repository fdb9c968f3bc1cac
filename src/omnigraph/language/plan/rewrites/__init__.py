"""One rule to a file; `plan/rewrite.py` has their order."""
