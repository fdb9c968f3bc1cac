import pytest

from omnigraph import limits
from omnigraph.clock import SystemClock, backoff_s
from omnigraph.testing.clock import ManualClock


def test_the_system_clock_counts_on_and_its_monotonic_count_never_goes_back() -> None:
    clock = SystemClock()
    first, second = clock.monotonic(), clock.monotonic()
    assert first <= second
    assert clock.now_us() > 1_700_000_000_000_000


@pytest.mark.parametrize("attempt", range(1, 20))
def test_the_wait_before_a_further_try_is_in_the_upper_half_of_a_doubling_and_bounded_time(attempt: int) -> None:
    ceiling_s = min(limits.PUBLISH_BACKOFF_MS_MAX, limits.PUBLISH_BACKOFF_MS_MIN * 2 ** (attempt - 1)) / 1_000
    for _ in range(20):
        assert ceiling_s / 2 <= backoff_s(attempt) <= ceiling_s


def test_two_that_lost_one_race_do_not_wait_equally_long() -> None:
    assert len({backoff_s(8) for _ in range(50)}) > 1


def test_other_bounds_can_be_given() -> None:
    assert backoff_s(30, first_ms=1, most_ms=4) <= 0.004


def test_a_manual_clock_goes_only_when_it_is_told_to() -> None:
    clock = ManualClock(start_us=5_000_000)
    assert (clock.now_us(), clock.monotonic()) == (5_000_000, 0.0)
    clock.sleep(1.5)
    clock.advance(0.5)
    assert (clock.now_us(), clock.monotonic()) == (7_000_000, 2.0)
    clock.set_back(3.0)
    assert (clock.now_us(), clock.monotonic()) == (4_000_000, 2.0)
