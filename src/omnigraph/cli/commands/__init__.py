"""The commands, each module imported when one of its commands runs."""
