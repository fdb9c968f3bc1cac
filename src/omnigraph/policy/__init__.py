"""Who may do what: policy files, judged by Cedar.

    rules       what a policy is: groups of actors, protected branches, rules that allow
    read        from a file to a policy, strictly
    cedar       the same as Cedar sees it
    policy      the judge: a request in, a decision out
    cases       files of expected decisions, run against a policy

Everything that no rule allows is denied. Cedar comes with the extra `server`; it is imported when the first policy is
made, so that reading policies needs it and nothing else does.
"""
