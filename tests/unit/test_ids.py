from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph import ids
from omnigraph.ids import ULID_LENGTH, UlidSource
from omnigraph.testing.clock import ManualClock


def test_ids_of_one_source_rise_within_one_millisecond() -> None:
    source = UlidSource(ManualClock())
    made = [source.new() for _ in range(1_000)]
    assert made == sorted(set(made))


def test_ids_of_one_source_rise_when_the_clock_steps_back() -> None:
    clock = ManualClock()
    source = UlidSource(clock)
    first = source.new()
    clock.set_back(3_600)
    assert source.new() > first


def test_ids_made_in_many_threads_are_all_different() -> None:
    source = UlidSource(ManualClock())
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: source.new(), range(2_000)))
    assert len(set(made)) == len(made)


def test_an_id_carries_the_time_it_was_made() -> None:
    clock = ManualClock(start_us=1_234_567_890_123_456)
    assert ids.decode(UlidSource(clock).new()[:10]) == 1_234_567_890_123


@pytest.mark.parametrize("number", [0, 1, 31, 32, 2**80 - 1, 2**80, 2**128 - 1])
def test_a_number_survives_being_spelled(number: int) -> None:
    spelled = ids.encode(number)
    assert len(spelled) == ULID_LENGTH
    assert ids.is_ulid(spelled)
    assert ids.decode(spelled) == number


def test_spelling_keeps_the_order_of_numbers() -> None:
    numbers = [0, 1, 2**40, 2**80, 2**80 + 1, 2**127]
    assert sorted(map(ids.encode, numbers)) == list(map(ids.encode, numbers))


@pytest.mark.parametrize("text", ["", "01J", "8" + "0" * 25, "0" * 25 + "U", "0" * 25 + "l", "0" * 27, "é" * 26])
def test_what_is_no_ulid_is_not_taken_for_one(text: str) -> None:
    assert not ids.is_ulid(text)


def test_an_id_that_comes_later_anyway_is_kept() -> None:
    assert ids.after(ids.encode(5), ids.encode(6)) == ids.encode(6)


@pytest.mark.parametrize("behind_s", [0, 1, 3_600])
def test_an_id_from_a_clock_that_is_behind_is_moved_after_the_one_before(behind_s: int) -> None:
    clock = ManualClock()
    ahead = UlidSource(clock).new()
    clock.set_back(behind_s)
    assert ids.after(ahead, UlidSource(clock).new()) > ahead


def test_two_hosts_that_are_both_behind_do_not_choose_the_same_id() -> None:
    clock = ManualClock()
    ahead = UlidSource(clock).new()
    clock.set_back(60)
    chosen = {ids.after(ahead, UlidSource(clock).new()) for _ in range(50)}
    assert len(chosen) == 50
