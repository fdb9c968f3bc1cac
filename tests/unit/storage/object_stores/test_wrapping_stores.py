"""The stores that stand before another one: retrying, read-only, counting, delaying, faulty."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph import limits
from omnigraph.failpoints import Crash
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.object_stores import MemoryStore, ReadOnlyStore, RequestKind, RetryingStore
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import CountingStore, DelayingStore, FaultyStore

REQUESTS: dict[RequestKind, Callable[[ObjectStore], object]] = {
    RequestKind.GET: lambda store: store.get("a"),
    RequestKind.LIST: lambda store: list(store.list("")),
    RequestKind.PUT: lambda store: store.put("b", b"new"),
    RequestKind.PUT_IF_ABSENT: lambda store: store.put_if_absent("c", b"new"),
    RequestKind.COPY: lambda store: store.copy("a", "d"),
    RequestKind.DELETE: lambda store: store.delete("a"),
    RequestKind.DELETE_PREFIX: lambda store: store.delete_prefix(""),
    RequestKind.MAKE_DURABLE: lambda store: store.make_durable(["a"]),
    RequestKind.PROVE: lambda store: store.prove_put_if_absent(),
}
WRITES = [kind for kind in REQUESTS if kind not in {RequestKind.GET, RequestKind.LIST}]
# For every fault but the stall: what the caller is told, and whether the request was carried out.
OUTCOMES: dict[Fault, tuple[type[BaseException], bool]] = {
    Fault.FAIL_BEFORE: (StoreTransient, False),
    Fault.FAIL_AFTER: (StoreTransient, True),
    Fault.LOSE_ANSWER: (OutcomeUnknown, True),
    Fault.LOSE_REQUEST: (OutcomeUnknown, False),
    Fault.CRASH_BEFORE: (Crash, False),
    Fault.CRASH_AFTER: (Crash, True),
    Fault.NO_SPACE: (StoreRefused, False),
}
PAGE = limits.STORE_LIST_PAGE_KEYS_MAX


class RecordingClock:
    """A clock that stands still and notes for how long somebody wanted to wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now_us(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def objects() -> MemoryStore:
    store = MemoryStore()
    store.put("a", b"old")
    return store


@pytest.fixture
def faulty(objects: MemoryStore) -> FaultyStore:
    return FaultyStore(objects)


@pytest.fixture
def clock() -> RecordingClock:
    return RecordingClock()


def everything_in(store: ObjectStore) -> dict[str, bytes]:
    return {listed.path: store.get(listed.path) for listed in store.list("")}


class TestRetryingStore:
    @pytest.fixture
    def retrying(self, faulty: FaultyStore, clock: RecordingClock) -> RetryingStore:
        return RetryingStore(faulty, clock=clock)

    @pytest.mark.parametrize("kind", REQUESTS)
    def test_a_transient_failure_is_tried_again(
        self, retrying: RetryingStore, faulty: FaultyStore, clock: RecordingClock, kind: RequestKind
    ) -> None:
        faulty.arm(Fault.FAIL_BEFORE, kind=kind, times=limits.STORE_RETRY_ATTEMPTS_MAX - 1)
        REQUESTS[kind](retrying)
        assert len(clock.waits) == limits.STORE_RETRY_ATTEMPTS_MAX - 1

    @pytest.mark.parametrize("kind", REQUESTS)
    def test_the_number_of_tries_is_bounded(
        self, retrying: RetryingStore, faulty: FaultyStore, clock: RecordingClock, kind: RequestKind
    ) -> None:
        armed = faulty.arm(Fault.FAIL_BEFORE, kind=kind, times=1_000)
        with pytest.raises(StoreTransient):
            REQUESTS[kind](retrying)
        assert armed.seen == limits.STORE_RETRY_ATTEMPTS_MAX
        assert len(clock.waits) == limits.STORE_RETRY_ATTEMPTS_MAX - 1

    def test_the_waits_grow_within_their_bounds(
        self, retrying: RetryingStore, faulty: FaultyStore, clock: RecordingClock
    ) -> None:
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, times=1_000)
        with pytest.raises(StoreTransient):
            retrying.get("a")
        first = limits.STORE_RETRY_BACKOFF_MS_MIN / 1_000
        for number, wait in enumerate(clock.waits):
            assert first * 2**number / 2 <= wait <= first * 2**number

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
    def test_a_conditional_put_whose_answer_was_lost_is_never_sent_again(
        self, retrying: RetryingStore, faulty: FaultyStore, clock: RecordingClock, fault: Fault
    ) -> None:
        armed = faulty.arm(fault, kind=RequestKind.PUT_IF_ABSENT)
        with pytest.raises(OutcomeUnknown):
            retrying.put_if_absent("c", b"new")
        assert armed.seen == 1
        assert clock.waits == []

    @pytest.mark.parametrize(
        ("request_", "error"),
        [
            (lambda store: store.get("nothing"), ObjectNotFound),
            (lambda store: store.put_if_absent("a", b""), ObjectExists),
            (lambda store: store.get("no/../path"), StoreRefused),
        ],
    )
    def test_an_answer_is_not_tried_again(
        self,
        retrying: RetryingStore,
        clock: RecordingClock,
        request_: Callable[[ObjectStore], object],
        error: type[Exception],
    ) -> None:
        with pytest.raises(error):
            request_(retrying)
        assert clock.waits == []

    @pytest.mark.parametrize("limit", [None, 2 * PAGE + 10, PAGE + 1, 5])
    def test_a_listing_that_breaks_off_goes_on_behind_what_it_gave(
        self, objects: MemoryStore, faulty: FaultyStore, retrying: RetryingStore, limit: int | None
    ) -> None:
        there = [f"many/{number:05}" for number in range(2 * PAGE + 50)]
        for path in there:
            objects.put(path, b"")
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.LIST, at=1)
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.LIST, at=3)
        assert [listed.path for listed in retrying.list("many/", limit=limit)] == there[:limit]


class TestReadOnlyStore:
    @pytest.mark.parametrize("kind", WRITES)
    def test_every_write_is_refused_before_it_reaches_the_store(self, objects: MemoryStore, kind: RequestKind) -> None:
        counting = CountingStore(objects)
        with pytest.raises(StoreRefused, match="was opened read-only"):
            REQUESTS[kind](ReadOnlyStore(counting))
        assert counting.total == 0
        assert everything_in(objects) == {"a": b"old"}

    def test_reads_pass(self, objects: MemoryStore) -> None:
        objects.put("folder/b", b"")
        store = ReadOnlyStore(objects)
        assert store.get("a") == b"old"
        assert [listed.path for listed in store.list("", limit=1)] == ["a"]
        assert list(store.list_folders("")) == ["folder"]
        assert store.uri == objects.uri


class TestCountingStore:
    @pytest.mark.parametrize("kind", REQUESTS)
    def test_each_kind_is_counted_once(self, objects: MemoryStore, kind: RequestKind) -> None:
        store = CountingStore(objects)
        REQUESTS[kind](store)
        assert store.counts() == {kind: 1}
        assert store.total == 1
        assert store.durable == (1 if kind in DURABLE_REQUESTS else 0)

    def test_what_fails_counts_too(self, objects: MemoryStore) -> None:
        store = CountingStore(objects)
        with pytest.raises(ObjectNotFound):
            store.get("nothing")
        with pytest.raises(ObjectExists):
            store.put_if_absent("a", b"")
        assert store.requests() == ((RequestKind.GET, "nothing"), (RequestKind.PUT_IF_ABSENT, "a"))

    @pytest.mark.parametrize(
        ("there", "taken", "pages"),
        [(0, None, 1), (1, None, 1), (PAGE, None, 1), (PAGE + 1, None, 2), (2 * PAGE, None, 2), (PAGE + 1, 1, 1)],
    )
    def test_a_listing_counts_by_pages(self, there: int, taken: int | None, pages: int) -> None:
        objects = MemoryStore()
        for number in range(there):
            objects.put(f"a/{number:05}", b"")
        store = CountingStore(objects)
        assert len(list(store.list("a/", limit=taken))) == (there if taken is None else taken)
        assert store.counts() == {RequestKind.LIST: pages}

    def test_a_reset_gives_what_was_counted_and_starts_again(self, objects: MemoryStore) -> None:
        store = CountingStore(objects)
        store.get("a")
        list(store.list_folders(""))
        assert store.reset() == {RequestKind.GET: 1, RequestKind.LIST: 1}
        assert store.total == 0
        assert store.requests() == ()

    def test_threads_lose_no_count(self, objects: MemoryStore) -> None:
        store = CountingStore(objects)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(store.get, ["a"] * 400))
        assert store.counts() == {RequestKind.GET: 400}


class TestDelayingStore:
    def test_every_request_takes_as_long_as_its_kind(self, objects: MemoryStore, clock: RecordingClock) -> None:
        store = DelayingStore(objects, seconds=3.0, by_kind={RequestKind.GET: 1.0}, clock=clock)
        store.get("a")
        store.put("b", b"")
        list(store.list(""))
        assert clock.waits == [1.0, 3.0, 3.0]


class TestFaultyStore:
    @pytest.mark.parametrize("fault", OUTCOMES)
    @pytest.mark.parametrize("kind", sorted(DURABLE_REQUESTS))
    def test_a_fault_happens_before_or_after_the_request_and_once(
        self, objects: MemoryStore, faulty: FaultyStore, fault: Fault, kind: RequestKind
    ) -> None:
        error, done = OUTCOMES[fault]
        before = everything_in(objects)
        armed = faulty.arm(fault, kind=kind)
        with pytest.raises(error):
            REQUESTS[kind](faulty)
        assert (everything_in(objects) != before) is done
        assert armed.hit.is_set()
        assert faulty.faults.happened() == {fault: 1}
        everything_in(faulty)

    def test_every_fault_has_an_outcome_here(self) -> None:
        assert set(OUTCOMES) == set(Fault) - {Fault.STALL}

    def test_the_chosen_request_is_counted_by_kind_and_path(self, objects: MemoryStore, faulty: FaultyStore) -> None:
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.PUT, at=2, path_part="chosen/")
        faulty.put("chosen/1", b"")
        faulty.put("other/1", b"")
        faulty.put_if_absent("chosen/2", b"")
        with pytest.raises(StoreTransient):
            faulty.put("chosen/3", b"")
        faulty.put("chosen/4", b"")
        assert sorted(everything_in(objects)) == ["a", "chosen/1", "chosen/2", "chosen/4", "other/1"]

    def test_without_a_kind_every_request_that_changes_something_counts(self, faulty: FaultyStore) -> None:
        faulty.arm(Fault.CRASH_BEFORE, at=5)
        for kind in (RequestKind.GET, RequestKind.LIST, RequestKind.PUT, RequestKind.PUT_IF_ABSENT, RequestKind.COPY):
            REQUESTS[kind](faulty)
        faulty.delete("nothing")
        with pytest.raises(Crash):
            faulty.delete_prefix("nothing/")

    def test_a_fault_can_last_for_several_requests_and_be_called_off(self, faulty: FaultyStore) -> None:
        faulty.arm(Fault.NO_SPACE, times=2)
        for _ in range(2):
            with pytest.raises(StoreRefused, match="no space left"):
                faulty.put("b", b"")
        faulty.put("b", b"")
        faulty.arm(Fault.NO_SPACE, times=2)
        faulty.disarm()
        faulty.put("c", b"")

    @pytest.mark.parametrize("release", ["release", "disarm"])
    def test_a_stalled_request_waits_and_then_goes_on(
        self, objects: MemoryStore, faulty: FaultyStore, release: str
    ) -> None:
        armed = faulty.arm(Fault.STALL, kind=RequestKind.PUT)
        thread = threading.Thread(target=faulty.put, args=("b", b""))
        thread.start()
        assert armed.hit.wait(60)
        assert "b" not in everything_in(objects)
        if release == "release":
            armed.released.set()
        else:
            faulty.disarm()
        thread.join()
        assert "b" in everything_in(objects)

    def test_a_page_of_a_listing_can_fail(self, objects: MemoryStore, faulty: FaultyStore) -> None:
        for number in range(PAGE + 1):
            objects.put(f"many/{number:05}", b"")
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.LIST, at=2)
        given = []
        with pytest.raises(StoreTransient):
            for listed in faulty.list("many/"):
                given.append(listed)  # noqa: PERF402  (one by one, to see how far it comes)
        assert len(given) == PAGE

    def test_wrappers_compose(self, objects: MemoryStore, clock: RecordingClock) -> None:
        counting = CountingStore(objects)
        faulty = FaultyStore(counting)
        outside = CountingStore(RetryingStore(DelayingStore(faulty, clock=clock), clock=clock))
        faulty.arm(Fault.FAIL_AFTER, kind=RequestKind.PUT, times=2)
        outside.put("b", b"new")
        assert outside.counts() == {RequestKind.PUT: 1}
        assert counting.counts() == {RequestKind.PUT: 3}
