"""What a store fenced by an external one does when its writers die and when answers are lost, at every step."""

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.postgres_server import PostgresServer
from tests.support.unfenced_store import UnfencedStore

from omnigraph import limits
from omnigraph.failpoints import Crash
from omnigraph.ids import UlidSource
from omnigraph.storage.external_store import ExternalEntry, ExternalStore
from omnigraph.storage.external_stores import SqliteExternalStore
from omnigraph.storage.external_stores.postgres import PostgresExternalStore
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.object_stores import ExternallyFencedStore, LocalStore, MemoryStore, RequestKind
from omnigraph.storage.object_stores.externally_fenced import STAGED_FOLDER
from omnigraph.testing.faults import Fault, Faults
from omnigraph.testing.stores import CountingStore, FaultyExternalStore, FaultyStore

READERS = 6
PATH = "log/main/00000000000000000007.json"
# The requests of one conditional put that change something, in order.
STAGE, DECIDE, FINALISE, REPOINT, CLEAN_UP = 1, 2, 3, 4, 5
CRASHES = [
    (step, fault)
    for step in (STAGE, DECIDE, FINALISE, REPOINT, CLEAN_UP)
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
]


@dataclass(frozen=True, slots=True)
class Fenced:
    """Stores over the same objects and the same external store: one that is going to fail, and one that reads."""

    objects: MemoryStore
    external: ExternalStore
    root: str
    faults: Faults

    @property
    def doomed(self) -> ExternallyFencedStore:
        """Requests to both sides are counted and cut together."""
        return ExternallyFencedStore(
            FaultyStore(UnfencedStore(self.objects), self.faults), FaultyExternalStore(self.external, self.faults)
        )

    @property
    def reader(self) -> ExternallyFencedStore:
        return ExternallyFencedStore(self.objects, self.external)


class FencedStoreFaults:
    """What must hold whichever external store decides."""

    @pytest.fixture
    def external(self) -> ExternalStore:
        raise NotImplementedError("each implementation gives its own")

    @pytest.fixture
    def root(self) -> str:
        return f"memory://{UlidSource().new()}"

    @pytest.fixture
    def fenced(self, external: ExternalStore, root: str) -> Fenced:
        return Fenced(MemoryStore(root.removeprefix("memory://")), external, root, Faults())

    @pytest.mark.parametrize(("step", "fault"), CRASHES)
    @pytest.mark.parametrize("read", ["get", "list", "list_folders", "copy"])
    def test_a_write_that_crashes_is_there_or_not_and_readers_finish_it(
        self, fenced: Fenced, step: int, fault: Fault, read: str
    ) -> None:
        fenced.reader.put_if_absent("log/main/00000000000000000008.json", b"the one before")
        fenced.faults.arm(fault, at=step)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")
        exists = step > DECIDE or (step == DECIDE and fault is Fault.CRASH_AFTER)
        copied = step > FINALISE or (step == FINALISE and fault is Fault.CRASH_AFTER)

        # Who knows nothing of the external store misses at most this one.
        seen = [listed.path for listed in fenced.objects.list("log/")]
        assert seen == [PATH, "log/main/00000000000000000008.json"][0 if copied else 1 :]

        match read:
            case "get" if exists:
                assert fenced.reader.get(PATH) == b"the body"
            case "get":
                with pytest.raises(ObjectNotFound):
                    fenced.reader.get(PATH)
            case "list":
                assert (PATH in [listed.path for listed in fenced.reader.list("")]) is exists
            case "list_folders":
                assert list(fenced.reader.list_folders("")) == ["log"]
            case "copy" if exists:
                fenced.reader.copy(PATH, "elsewhere")
                assert fenced.reader.get("elsewhere") == b"the body"
            case "copy":
                with pytest.raises(ObjectNotFound):
                    fenced.reader.copy(PATH, "elsewhere")

        if not exists:
            fenced.reader.put_if_absent(PATH, b"another's")
            assert fenced.reader.get(PATH) == b"another's"
            return
        assert fenced.objects.get(PATH) == b"the body"
        with pytest.raises(ObjectExists):
            fenced.reader.put_if_absent(PATH, b"another's")
        # One that finds the object at its path does not ask; any listing then puts the entry right.
        list(fenced.reader.list("log/"))
        assert fenced.external.get(fenced.root, PATH) == ExternalEntry(PATH, PATH)
        assert list(fenced.external.unfinished(fenced.root, "")) == []
        fenced.reader.sweep_staged()
        assert [listed.path for listed in fenced.objects.list(STAGED_FOLDER)] == []

    @pytest.mark.parametrize("step", [FINALISE, REPOINT])
    def test_any_number_of_readers_finish_a_write_at_once(self, fenced: Fenced, step: int) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=step)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")
        start = threading.Barrier(READERS)

        def read(number: int) -> bytes:
            start.wait()
            if number % 2:
                assert [listed.path for listed in fenced.reader.list("")] == [PATH]
            return fenced.reader.get(PATH)

        with ThreadPoolExecutor(READERS) as threads:
            assert set(threads.map(read, range(READERS))) == {b"the body"}
        assert fenced.external.get(fenced.root, PATH) == ExternalEntry(PATH, PATH)
        assert [listed.path for listed in fenced.objects.list("")] == [PATH]

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
    @pytest.mark.parametrize("times", [1, 2])
    def test_a_lost_answer_of_the_external_store_is_read_back(self, fenced: Fenced, fault: Fault, times: int) -> None:
        fenced.faults.arm(fault, kind=RequestKind.PUT_IF_ABSENT, times=times)
        fenced.doomed.put_if_absent(PATH, b"the body")
        assert fenced.reader.get(PATH) == b"the body"
        with pytest.raises(ObjectExists):
            fenced.doomed.put_if_absent(PATH, b"another's")

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
    def test_an_external_store_that_never_answers_leaves_the_outcome_unknown_and_the_bytes_in_place(
        self, fenced: Fenced, fault: Fault
    ) -> None:
        fenced.faults.arm(fault, kind=RequestKind.PUT_IF_ABSENT, times=100)
        fenced.faults.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, at=2, times=100)
        with pytest.raises(OutcomeUnknown):
            fenced.doomed.put_if_absent(PATH, b"the body")
        assert len(list(fenced.objects.list(STAGED_FOLDER))) == 1
        fenced.faults.disarm()

        if fault is Fault.LOSE_ANSWER:
            assert fenced.doomed.get(PATH) == b"the body"
        else:
            fenced.doomed.put_if_absent(PATH, b"the body")
        assert fenced.reader.get(PATH) == b"the body"

    def test_a_request_that_was_lost_and_meanwhile_overtaken_is_a_lost_race(self, fenced: Fenced) -> None:
        fenced.faults.arm(Fault.LOSE_REQUEST, kind=RequestKind.PUT_IF_ABSENT)
        reads_back = fenced.faults.arm(Fault.STALL, kind=RequestKind.GET, at=2)
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(fenced.doomed.put_if_absent, PATH, b"late")
            assert reads_back.hit.wait(60)
            fenced.reader.put_if_absent(PATH, b"in time")
            reads_back.released.set()
            with pytest.raises(ObjectExists):
                late.result()
        assert fenced.reader.get(PATH) == b"in time"
        # The lost request might still arrive, so its bytes were not deleted on a guess.
        assert len(fenced.reader.sweep_staged()) == 1

    def test_a_write_finished_by_a_reader_before_its_answer_arrived_may_look_like_anothers_but_is_there(
        self, fenced: Fenced
    ) -> None:
        fenced.faults.arm(Fault.LOSE_ANSWER, kind=RequestKind.PUT_IF_ABSENT)
        reads_back = fenced.faults.arm(Fault.STALL, kind=RequestKind.GET, at=2)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(fenced.doomed.put_if_absent, PATH, b"the body")
            assert reads_back.hit.wait(60)
            assert fenced.reader.get(PATH) == b"the body"
            reads_back.released.set()
            with pytest.raises(ObjectExists):
                slow.result()
        assert fenced.reader.get(PATH) == b"the body"

    @pytest.mark.parametrize("kind", [RequestKind.COPY, RequestKind.DELETE])
    @pytest.mark.parametrize("fault", [Fault.FAIL_BEFORE, Fault.FAIL_AFTER, Fault.NO_SPACE])
    def test_a_write_that_is_decided_succeeds_even_if_it_cannot_be_finished(
        self, fenced: Fenced, kind: RequestKind, fault: Fault
    ) -> None:
        fenced.faults.arm(fault, kind=kind)
        fenced.doomed.put_if_absent(PATH, b"the body")
        assert fenced.reader.get(PATH) == b"the body"

    @pytest.mark.parametrize("fault", [Fault.FAIL_BEFORE, Fault.NO_SPACE])
    def test_a_write_that_fails_before_it_is_decided_leaves_nothing(self, fenced: Fenced, fault: Fault) -> None:
        for step in (STAGE, DECIDE):
            is_retried = step == DECIDE and fault is Fault.FAIL_BEFORE
            fenced.faults.arm(fault, at=step, times=limits.STORE_RETRY_ATTEMPTS_MAX if is_retried else 1)
            with pytest.raises((StoreTransient, StoreRefused)):
                fenced.doomed.put_if_absent(PATH, b"the body")
            fenced.faults.disarm()
            assert [listed.path for listed in fenced.objects.list("")] == []
            with pytest.raises(ObjectNotFound):
                fenced.reader.get(PATH)

    @pytest.mark.parametrize(
        ("fault", "kind", "error"),
        [
            (Fault.FAIL_BEFORE, RequestKind.COPY, StoreTransient),
            (Fault.NO_SPACE, RequestKind.COPY, StoreRefused),
            (Fault.FAIL_BEFORE, RequestKind.PUT, StoreTransient),
            (Fault.LOSE_REQUEST, RequestKind.PUT, OutcomeUnknown),
        ],
    )
    def test_a_reader_that_cannot_finish_a_write_refuses_to_answer(
        self, fenced: Fenced, fault: Fault, kind: RequestKind, error: type[Exception]
    ) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=FINALISE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")

        reads: tuple[Callable[[], object], ...] = (
            lambda: fenced.doomed.get(PATH),
            lambda: list(fenced.doomed.list("log/")),
            lambda: list(fenced.doomed.list_folders("")),
            lambda: fenced.doomed.copy(PATH, "elsewhere"),
        )
        # The first read that copies puts the object in place, and then it needs no external store any more.
        for read in reads if kind is RequestKind.COPY else reads[1:3]:
            fenced.faults.disarm()
            fenced.faults.arm(fault, kind=kind, times=100)
            with pytest.raises(error):
                read()
        fenced.faults.disarm()
        assert fenced.doomed.get(PATH) == b"the body"

    def test_a_reader_whose_repointing_was_done_but_not_answered_goes_on(self, fenced: Fenced) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=FINALISE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")
        fenced.faults.disarm()
        fenced.faults.arm(Fault.LOSE_ANSWER, kind=RequestKind.PUT)
        assert fenced.doomed.get(PATH) == b"the body"
        assert fenced.external.get(fenced.root, PATH) == ExternalEntry(PATH, PATH)

    def test_an_object_deleted_before_it_was_finished_stays_deleted(self, fenced: Fenced) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=FINALISE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")
        fenced.reader.delete(PATH)
        with pytest.raises(ObjectNotFound):
            fenced.reader.get(PATH)
        assert [listed.path for listed in fenced.objects.list("")] == []

    def test_a_folder_deleted_with_unfinished_objects_in_it_stays_deleted(self, fenced: Fenced) -> None:
        for step in (DECIDE, FINALISE, REPOINT):
            fenced.faults.arm(Fault.CRASH_BEFORE, at=step)
            with pytest.raises(Crash):
                fenced.doomed.put_if_absent(f"log/{step}", b"the body")
            fenced.faults.disarm()
        fenced.reader.delete_prefix("log/")
        assert list(fenced.reader.list("")) == []
        assert [listed.path for listed in fenced.objects.list("")] == []

    @pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
    def test_a_deletion_whose_answer_is_lost_can_be_sent_again(self, fenced: Fenced, fault: Fault) -> None:
        fenced.doomed.put_if_absent(PATH, b"the body")
        deletions: tuple[tuple[RequestKind, Callable[[], None]], ...] = (
            (RequestKind.DELETE, lambda: fenced.doomed.delete(PATH)),
            (RequestKind.DELETE_PREFIX, lambda: fenced.doomed.delete_prefix("log/")),
        )
        for kind, delete in deletions:
            fenced.faults.arm(fault, kind=kind)
            with pytest.raises(StoreTransient):
                delete()
            delete()
        with pytest.raises(ObjectNotFound):
            fenced.reader.get(PATH)
        fenced.reader.put_if_absent(PATH, b"again")

    def test_an_object_deleted_behind_the_external_store_can_be_created_again(self, fenced: Fenced) -> None:
        fenced.reader.put_if_absent(PATH, b"first")
        fenced.objects.delete(PATH)
        with pytest.raises(ObjectNotFound):
            fenced.reader.get(PATH)
        fenced.reader.put_if_absent(PATH, b"second")
        assert fenced.reader.get(PATH) == b"second"

    def test_an_unfinished_object_whose_bytes_are_gone_blocks_nobody(self, fenced: Fenced) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=FINALISE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"the body")
        fenced.objects.delete_prefix(STAGED_FOLDER)
        assert list(fenced.reader.list("")) == []
        with pytest.raises(ObjectNotFound):
            fenced.reader.get(PATH)
        fenced.reader.put_if_absent(PATH, b"another body")
        assert fenced.reader.get(PATH) == b"another body"

    def test_a_put_whose_bytes_were_swept_before_it_was_decided_has_created_nothing(self, fenced: Fenced) -> None:
        stalled = fenced.faults.arm(Fault.STALL, at=DECIDE)
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(fenced.doomed.put_if_absent, PATH, b"late")
            assert stalled.hit.wait(60)
            fenced.objects.delete_prefix(STAGED_FOLDER)
            stalled.released.set()
            with pytest.raises(OutcomeUnknown, match="taken away"):
                late.result()
        with pytest.raises(ObjectNotFound):
            fenced.reader.get(PATH)
        assert list(fenced.reader.list("")) == []

    def test_a_plain_put_over_an_unfinished_object_wins(self, fenced: Fenced) -> None:
        fenced.faults.arm(Fault.CRASH_BEFORE, at=FINALISE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent(PATH, b"created")
        fenced.reader.put(PATH, b"put")
        assert [listed.path for listed in fenced.reader.list("")] == [PATH]
        assert fenced.reader.get(PATH) == b"put"

    def test_the_loser_of_a_race_takes_its_bytes_away(self, fenced: Fenced) -> None:
        stalled = fenced.faults.arm(Fault.STALL, at=DECIDE)
        with ThreadPoolExecutor(1) as threads:
            late = threads.submit(fenced.doomed.put_if_absent, PATH, b"late")
            assert stalled.hit.wait(60)
            fenced.reader.put_if_absent(PATH, b"in time")
            stalled.released.set()
            with pytest.raises(ObjectExists):
                late.result()
        assert [listed.path for listed in fenced.objects.list("")] == [PATH]

    def test_only_staged_bytes_that_can_come_to_nothing_are_swept(self, fenced: Fenced) -> None:
        for path in ("dead", "perhaps only slow"):
            fenced.faults.arm(Fault.CRASH_AFTER, at=STAGE)
            with pytest.raises(Crash):
                fenced.doomed.put_if_absent(path, b"")
            fenced.faults.disarm()
        fenced.faults.arm(Fault.CRASH_AFTER, at=DECIDE)
        with pytest.raises(Crash):
            fenced.doomed.put_if_absent("unfinished", b"needed")
        fenced.reader.put_if_absent("dead", b"somebody else's")

        (swept,) = fenced.reader.sweep_staged()

        assert swept.startswith(f"{STAGED_FOLDER}dead.")
        assert list(fenced.reader.sweep_staged()) == []
        assert len(list(fenced.objects.list(STAGED_FOLDER))) == 2
        assert fenced.reader.get("unfinished") == b"needed"

    def test_what_is_staged_cannot_be_addressed(self, fenced: Fenced) -> None:
        with pytest.raises(StoreRefused):
            fenced.reader.put(f"{STAGED_FOLDER}a", b"")
        with pytest.raises(StoreRefused):
            fenced.reader.get(f"{STAGED_FOLDER}a")

    def test_finding_an_object_asks_nobody_else_and_a_conditional_put_costs_four_requests(self, fenced: Fenced) -> None:
        counting = CountingStore(fenced.objects)
        store = ExternallyFencedStore(counting, fenced.external)
        store.put_if_absent(PATH, b"the body")
        assert counting.reset() == {
            RequestKind.GET: 1,
            RequestKind.PUT: 1,
            RequestKind.COPY: 1,
            RequestKind.DELETE: 1,
        }
        # Nothing listens at this external store: whoever asks it fails.
        alone = ExternallyFencedStore(counting, SqliteExternalStore("/nonexistent/folder/external.db"))
        assert alone.get(PATH) == b"the body"
        alone.copy(PATH, "copy")
        assert counting.reset() == {RequestKind.GET: 1, RequestKind.COPY: 1}
        with pytest.raises(StoreRefused):
            alone.get("absent")
        counting.reset()
        assert [listed.path for listed in store.list("log/", limit=1)] == [PATH]
        assert counting.counts() == {RequestKind.LIST: 1}

    def test_a_folder_copied_elsewhere_is_complete(self, fenced: Fenced, tmp_path: Path) -> None:
        original = ExternallyFencedStore(LocalStore(tmp_path / "original"), fenced.external)
        for number in range(5):
            original.put_if_absent(f"log/{number}", f"{number}".encode())
        shutil.copytree(tmp_path / "original", tmp_path / "copy")
        unaware: ObjectStore = LocalStore(tmp_path / "copy")
        aware: ObjectStore = ExternallyFencedStore(LocalStore(tmp_path / "copy"), fenced.external)
        for store in (unaware, aware):
            assert [(listed.path, store.get(listed.path)) for listed in store.list("log/")] == [
                (f"log/{number}", f"{number}".encode()) for number in range(5)
            ]
        with pytest.raises(ObjectExists):
            aware.put_if_absent("log/4", b"taken")
        aware.put_if_absent("log/5", b"of the copy")
        original.put_if_absent("log/5", b"of the original")
        assert (aware.get("log/5"), original.get("log/5")) == (b"of the copy", b"of the original")


class TestFencedBySqlite(FencedStoreFaults):
    @pytest.fixture
    def external(self, tmp_path: Path) -> Iterator[ExternalStore]:
        store = SqliteExternalStore(tmp_path / "external.db")
        yield store
        store.close()


@pytest.mark.postgres
class TestFencedByPostgres(FencedStoreFaults):
    @pytest.fixture
    def external(self, postgres_server: PostgresServer) -> Iterator[ExternalStore]:
        store = PostgresExternalStore(postgres_server.address)
        yield store
        store.close()
