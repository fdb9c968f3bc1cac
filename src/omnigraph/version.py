"""The version of this package; `pyproject.toml` takes it from here."""

VERSION = "0.1.0"
# The number that clients written for this contract look for; it names the contract, not our files.
INTERNAL_SCHEMA = 6


def version_lines() -> str:
    """What the program says when it is asked for its version."""
    return f"omnigraph {VERSION}\ninternal-schema {INTERNAL_SCHEMA}"
