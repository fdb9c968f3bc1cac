"""Named lines of commits: branches, tags, history."""
