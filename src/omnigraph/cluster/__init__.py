"""Declarative management of several graphs with their schemas, stored queries and policies.

Desired state, read from the configuration folder:

    config, fields   parse and validate cluster.yaml
    declared         values of cluster.yaml
    files            read files named by cluster.yaml
    stored_queries   find queries in files and check them against a schema
    desired          resources with digests and dependencies; `cluster validate`

Actual state, below the storage root (`layout`):

    state            ledger contents: what was applied
    ledger           read and compare-and-swap the ledger
    catalog          stored query and policy texts, by digest
    approvals        consent to irreversible changes
    sidecars         write-ahead notes of graph operations
    lock             cluster-wide lock; lock_heartbeats shows which holders are alive
    graphs           create, change, observe and delete graphs

From one to the other:

    changes          differences between desired and actual state, pure
    session          configuration, storage and lock for the duration of one command
    planning         changes with migrations and approvals
    apply            `cluster apply`; draft builds the next ledger state, recovery finishes an interrupted apply
    commands         the other commands: plan, approve, status, refresh, import, force-unlock

Readers:

    serving          applied revision that a server loads
    access           graphs, queries and policies as the command line addresses them
"""
