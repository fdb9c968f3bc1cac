"""Rules of a schema as data, and the checks that find the rows that break them."""
