"""People talk to us."""
