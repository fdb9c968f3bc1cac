"""The command line, `omnigraph`."""
