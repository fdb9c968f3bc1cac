"""Random walks over every public operation of a graph, held against the plain model of `graph_model`.

A walk is a function of its seed. To replay one: `python -m tests.support.whole_system SEED [STEPS]`; with a range,
`python -m tests.support.whole_system 1000..4000`, it runs many, prints every seed and goes on after a failure. The last
steps are in the notes of the error, so that a counter-example can become a plain test.
"""

from tests.support.whole_system.walk import STEPS, Walk

__all__ = ["STEPS", "Walk"]
