"""Three-way merge of branches.

ancestry       the commit graph, over both parents, also where logs were cut
base           the merge base; several best common ancestors are combined into a virtual one
sides          pair the tables of both branches, and find the schema of the result
schema_views   schemas by stable ids, so that they can be compared
schema_items   choices and conflicts over types and properties
schema_drafts  the types of a merged schema, and the schema built from them
schema_merge   three-way merge of two schemas
schema_costs   the schema steps of a merge with the data they lose
changed        the rows each side changed since the base
three_way      compare rows changed on both sides: what to write, what conflicts
choices        resolutions and preferences given by the caller
resolve        resolutions as ids and rows of the schema
combine        apply choices to conflicting rows
rules          constraints that the result breaks
plan           everything together: what to adopt, what to write, every conflict
run            the write that publishes it
"""
