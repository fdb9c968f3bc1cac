"""One module per kind of record per on-disk version; the rest of the code knows only today's form."""
