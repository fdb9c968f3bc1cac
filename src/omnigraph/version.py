"""The version of this package; `pyproject.toml` takes it from here."""

VERSION = "0.1.0"
# Clients of the public contract look for this number; it is not the on-disk format.
INTERNAL_SCHEMA = 6


def version_lines() -> str:
    """Return the text of `--version`."""
    return f"omnigraph {VERSION}\ninternal-schema {INTERNAL_SCHEMA}"
