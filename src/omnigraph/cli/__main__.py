"""`python -m omnigraph.cli` is `omnigraph`."""

from omnigraph.cli.main import run

run()
