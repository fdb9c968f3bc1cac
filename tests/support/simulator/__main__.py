"""Run universes by hand: python -m tests.support.simulator FIRST [LAST]."""

import sys

from tests.support.simulator.universe import Universe

if __name__ == "__main__":
    first, last = int(sys.argv[1]), int(sys.argv[-1])
    for seed in range(first, last + 1):
        universe = Universe(seed)
        universe.run()
    print("\n".join(universe.trace), f"universes {first} to {last} are as they should be", sep="\n")
