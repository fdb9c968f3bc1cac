"""Loading files: any amount of nodes and edges, over any number of types, as one commit or not at all.

sources    which files, in which form
blocks     a piece of a file at a time, in whole lines
columnar   lines to columns, without touching a record by itself
strict     one record at a time, for those that need a word said about them
typed      columns to rows of a table; where some do not fit, which
local      all of it in this process
spark      all of it on Spark
"""
