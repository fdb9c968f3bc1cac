"""Sweeping: deleting files that nothing reaches any more.

Read in this order: `files` (what may lie under a root), `reading` (who lists them and looks through versions), `roots`
(what is reached), `classify` (which is which, pure), `sweep` (the order in which all of it is read, and why that is
safe), `delete`.
"""
