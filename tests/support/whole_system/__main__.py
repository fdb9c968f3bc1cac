"""Replay a walk, or run many: see the package."""

import sys
import traceback
import warnings

from tests.support.whole_system.walk import STEPS, Walk

from omnigraph.clock import SystemClock


def main(seeds: str, steps: str = str(STEPS)) -> int:
    """Run walks, one after the other, and return how many failed."""
    warnings.simplefilter("error")  # as in the test suite
    first, _, end = seeds.partition("..")
    clock = SystemClock()
    failed = 0
    for seed in range(int(first), int(end or int(first) + 1)):
        begun = clock.monotonic()
        try:
            Walk(seed).run(int(steps))
            outcome = "ok"
        except Exception:  # noqa: BLE001  (whatever it is, the next walk is to be taken)
            traceback.print_exc()
            outcome = "FAILED"
            failed += 1
        print(f"seed {seed}: {outcome}, {clock.monotonic() - begun:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
