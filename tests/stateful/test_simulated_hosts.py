"""Many small universes, in each of which several hosts work on one graph while something goes wrong.

Every acknowledged commit is in the log exactly once and can be read with all its files until it is pruned, and the
graph can always be opened, read, written, swept and verified. A failure names its seed, and how to run it again.
"""

import secrets
from collections.abc import Iterable

import pytest
from tests.support.simulator.universe import Universe

UNIVERSES = 2_000
SHARES = 8
TORTURED_UNIVERSES = 20_000


def run_all(seeds: Iterable[int]) -> None:
    """Run universes until one breaks a promise."""
    for seed in seeds:
        Universe(seed).run()


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "share", [pytest.param(share, marks=pytest.mark.xdist_group(f"universes {share}")) for share in range(SHARES)]
)
def test_no_promise_is_broken_in_any_universe(share: int) -> None:
    run_all(range(share, UNIVERSES, SHARES))


def test_a_universe_is_a_function_of_its_seed() -> None:
    for seed in range(5):
        first, second = Universe(seed), Universe(seed)
        first.run()
        second.run()
        assert first.trace == second.trace


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_no_promise_is_broken_in_universes_that_no_run_has_seen() -> None:
    first = secrets.randbelow(10**12)
    print(f"universes {first} to {first + TORTURED_UNIVERSES - 1}")
    run_all(range(first, first + TORTURED_UNIVERSES))
