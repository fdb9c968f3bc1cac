"""Walks over the whole system equal a plain model: every write, merge, schema change, prune and sweep, in any order.

The seed of a walk is its parameter; the error of one that fails tells the seed and the last steps. To replay one walk:

    python -m tests.support.whole_system SEED

A counter-example becomes a plain test beside what it is about, such as `tests/unit/api/test_head_commits.py`.
"""

import pytest
from tests.support.whole_system import STEPS, Walk

# Few enough for every run of the tests; each half is one process's where two share a run.
BOUNDED_STEPS = 120
TORTURED = range(1_000, 4_000)
BATCH = 100


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.xdist_group("whole-system-a")
def test_a_walk_equals_the_model(seed: int) -> None:
    Walk(seed).run(BOUNDED_STEPS)


@pytest.mark.parametrize("seed", range(6, 12))
@pytest.mark.xdist_group("whole-system-b")
def test_another_walk_equals_the_model(seed: int) -> None:
    Walk(seed).run(BOUNDED_STEPS)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("first", TORTURED[::BATCH])
def test_many_walks_equal_the_model(first: int) -> None:
    for seed in range(first, first + BATCH):
        print(f"seed {seed}")
        Walk(seed).run(STEPS)
