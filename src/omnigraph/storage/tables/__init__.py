"""The only package that imports lance: every effect on a table is a version that is invisible until it is published."""
