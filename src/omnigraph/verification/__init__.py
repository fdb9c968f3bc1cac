"""Verification: is everything there that commits refer to, as it was written; what is lost, and on which commits."""
