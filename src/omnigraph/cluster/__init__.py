"""Several graphs, their schemas, stored queries and policies, declared in one file and brought about step by step.

What a cluster should be:

    config          cluster.yaml, read strictly
    declared        what it says, as values
    desired         that with the files it names: resources, digests, what depends on what
    stored_queries  finding and checking queries in files

What it is:

    state           the ledger: what was applied, as a value
    ledger          where it lies, and how exactly one of several writers changes it
    lock            who is at work
    approvals       who agreed to what cannot be undone
    sidecars        what was under way when somebody died
    graphs          the graphs themselves

And how one becomes the other:

    changes         the differences, pure
    plan, apply     showing them, and carrying them out
    recovery        finishing what an earlier apply began
    observe         status, refresh, import
    serving         what a server takes from it
"""
