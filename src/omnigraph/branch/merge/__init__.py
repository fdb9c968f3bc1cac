"""Bringing what one branch did since it parted from another into that other one, as one commit.

ancestry    commits and their parents, over both parents, wherever their entries lie
base        the commit two branches are compared with: their best common ancestor
sides       which table of one branch is which of the other, and which schema holds afterwards
net         what a side did to each type since the base, told by its records alone
three_way   rows changed on both sides: what to write, and what clashes
resolve     what the caller says about clashes
rules       every rule of the schema that the result breaks
plan        all of it together: what to take over, what to write, and every conflict there is
run         the one write that publishes it
"""
