"""Omnigraph: a typed property graph on Lance tables, versioned and branched as one."""
