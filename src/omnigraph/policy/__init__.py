"""Authorization: policy files, evaluated by Cedar.

    rules       the content of a policy: groups of actors, protected branches, rules that allow
    read        parse a policy file, strictly
    cedar       translate rules and requests for Cedar, and evaluate them
    policy      decide requests
    cases       files of expected decisions, run against a policy

Everything that no rule allows is denied. Cedar comes with the extra `server`; it is imported when the first policy is
created, so that other code does not need it.
"""
