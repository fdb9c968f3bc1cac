import threading

import pytest

from omnigraph.errors import InvalidRequestError
from omnigraph.lru import LruCache


def test_the_least_recently_used_is_forgotten_first() -> None:
    cache: LruCache[str, str] = LruCache(2)
    made: list[str] = []

    def get(key: str) -> str:
        return cache.get_or_make(key, lambda: made.append(key) or key)  # type: ignore[func-returns-value]  # done for its effect

    for key in ("a", "b", "a", "c", "a", "b"):
        assert get(key) == key

    assert made == ["a", "b", "c", "b"]
    assert len(cache) == 2


def test_what_fails_is_not_remembered() -> None:
    cache: LruCache[str, str] = LruCache(2)

    def fail() -> str:
        raise InvalidRequestError("no")

    with pytest.raises(InvalidRequestError):
        cache.get_or_make("a", fail)
    assert cache.get_or_make("a", lambda: "yes") == "yes"


def test_many_threads_share_one_cache_and_its_bound() -> None:
    cache: LruCache[int, int] = LruCache(8)
    wrong: list[int] = []

    def work(offset: int) -> None:
        for number in range(2_000):
            key = (number * 7 + offset) % 24
            if cache.get_or_make(key, lambda key=key: key) != key:  # type: ignore[misc]  # the default only holds the value of this round
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert len(cache) <= 8


def test_the_first_value_of_a_key_stays() -> None:
    cache: LruCache[str, str] = LruCache(2)

    assert cache.setdefault("a", "first") == "first"
    assert cache.setdefault("a", "second") == "first"


def test_evicted_values_are_reported() -> None:
    evicted: list[int] = []
    cache: LruCache[str, int] = LruCache(1, evicted=evicted.append)

    cache.put("a", 1)
    cache.put("b", 2)

    assert evicted == [1]
    assert cache.get("a") is None
