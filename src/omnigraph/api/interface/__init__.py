"""The interface of a graph, wherever it is: what each call takes, returns and raises.

`reads`, `graph`   what `Graph` (in this process) and `RemoteGraph` (on a server) both offer
`storage`          what only a graph with access to its storage offers
`snapshot`         a graph at one commit
`history`          branches, tags, commits, changes, and the difference of two states
"""
