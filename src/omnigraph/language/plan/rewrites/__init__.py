"""One rewrite rule per module; `plan/rewrite.py` lists their order."""
