"""The log: one line of entries without gaps, read the same however its newest entry was found."""

import json
from dataclasses import replace

import pytest
from tests.support.cuts import FOR_EVER

from omnigraph import ids, limits
from omnigraph.errors import FormatError, NotFoundError, OutcomeUnknownError, UnavailableError
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN, CommitKind, Pin, Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.storage.records.read import FORMAT
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import CountingStore, FaultyStore
from omnigraph.transaction.log import Baseless, Done, Log, PutOutcome, Refused

CLOCK = ManualClock()
IDS = UlidSource(CLOCK)
BRANCH = "a/b ü%"


def entry(number: int, *, branch: str = BRANCH, tables: dict[str, Pin] | None = None, **more: object) -> Record:
    plain = Record(
        commit=IDS.new(),
        branch=branch,
        number=number,
        kind=CommitKind.MUTATION,
        parent=IDS.new(),
        schema="s",
        tables={"node:Person": Pin("nodes/p", 2**63 + number, 3, 4)} if tables is None else tables,
        created_at_us=number,
        footprint=Footprint({"node:Person": TypeFootprint(writes=frozenset({number}))}),
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # members by name, of their own types


def put(log: Log, record: Record) -> PutOutcome:
    """Put an entry on top of what is there."""
    return log.put(record, after=log.read(record.branch, record.number - 1) if record.number > 1 else None)


@pytest.fixture
def faulty(store: MemoryStore) -> FaultyStore:
    return FaultyStore(store)


def filled(store: MemoryStore | FaultyStore, count: int, *, branch: str = BRANCH) -> list[Record]:
    log = Log(store, clock=CLOCK)
    made = [entry(number, branch=branch) for number in range(1, count + 1)]
    for each in made:
        assert isinstance(put(log, each), Done)
    return made


# -- the newest entry --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [None, b"70", b"1", b"64", b"69", b"71", b"1000000", b"0", b"-3", b"", b"nonsense", b"\xff", b"7.5", b"9" * 5_000],
    ids=["none", "right", "old", "older", "one_behind", "beyond", "far_beyond", "zero", "negative", "empty", "words",
         "binary", "fraction", "huge"],
)  # fmt: skip
def test_the_head_is_the_same_whatever_the_hint_says(store: MemoryStore, hint: bytes | None) -> None:
    made = filled(store, 70)
    store.delete(paths.hint(BRANCH))
    if hint is not None:
        store.put(paths.hint(BRANCH), hint)
    assert Log(store, clock=CLOCK).head(BRANCH) == made[-1]


def test_a_hint_that_leads_to_a_damaged_entry_of_long_ago_leads_nobody_astray(store: MemoryStore) -> None:
    made = filled(store, 10)
    store.put(paths.hint(BRANCH), b"3")
    store.put(paths.entry(BRANCH, 3), b"{")
    assert Log(store, clock=CLOCK).head(BRANCH) == made[-1]


@pytest.mark.parametrize("behind", [0, 1, 2, 3, 7, 8, 33])
def test_the_head_is_found_from_any_entry_that_was_the_head_before(store: MemoryStore, behind: int) -> None:
    made = filled(store, 40 - behind)
    known = Log(store, clock=CLOCK)
    assert known.head(BRANCH) == made[-1]
    more = [entry(number) for number in range(41 - behind, 41)]
    for each in more:
        put(Log(store, clock=CLOCK), each)
    assert known.head(BRANCH) == [*made, *more][-1]


def test_a_branch_that_never_was_has_no_head(store: MemoryStore) -> None:
    log = Log(store, clock=CLOCK)
    assert log.head("nobody") is None
    assert log.since("nobody", 0) == []
    with pytest.raises(NotFoundError, match="'nobody'") as missing:
        log.live_head("nobody")
    assert missing.value.code == "branch_not_found"


def test_a_branch_that_was_deleted_has_a_head_and_no_live_one(store: MemoryStore) -> None:
    log = Log(store, clock=CLOCK)
    put(log, entry(1))
    put(log, entry(2, kind=CommitKind.DELETE, tables={}))
    assert log.head(BRANCH) is not None
    with pytest.raises(NotFoundError):
        log.live_head(BRANCH)


def test_a_hint_that_cannot_be_read_or_written_matters_to_nobody(faulty: FaultyStore) -> None:
    faulty.arm(Fault.NO_SPACE, times=FOR_EVER, kind=RequestKind.PUT, path_part=paths.hint(BRANCH))
    faulty.arm(Fault.NO_SPACE, times=FOR_EVER, kind=RequestKind.GET, path_part=paths.hint(BRANCH))
    made = filled(faulty, limits.HINT_EVERY_ENTRIES)
    assert Log(faulty, clock=CLOCK).head(BRANCH) == made[-1]


FOREIGN = ["README", "note.json", ".json", "0.json", "zzz", "hint.old", "00000000000000000000.jsonx", "sub/file.json"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_entry_is_passed_over(store: MemoryStore, name: str) -> None:
    made = filled(store, 3)
    store.put(f"{paths.log_folder(BRANCH)}{name}", b"whatever")
    log = Log(store, clock=CLOCK)
    assert log.head(BRANCH) == made[-1]
    assert log.since(BRANCH, 0) == made
    assert isinstance(put(log, entry(4)), Done)


def test_many_files_that_are_no_entries_are_passed_over(store: MemoryStore) -> None:
    made = filled(store, 3)
    for number in range(50):
        store.put(f"{paths.log_folder(BRANCH)}0-{number}", b"")
    assert Log(store, clock=CLOCK).head(BRANCH) == made[-1]


@pytest.mark.parametrize("number", [6, 9, 2**63, 2**64 - 1], ids=["near", "far", "very_far", "last"])
@pytest.mark.parametrize("copied", [True, False], ids=["copied", "scribbled"])
def test_a_file_named_like_an_entry_far_beyond_the_last_is_passed_over(
    store: MemoryStore, number: int, copied: bool
) -> None:
    made = filled(store, 3)
    store.put(paths.entry(BRANCH, number), store.get(paths.entry(BRANCH, 2)) if copied else b"whatever")
    log = Log(store, clock=CLOCK)
    assert log.head(BRANCH) == made[-1]
    assert isinstance(put(log, entry(4)), Done)
    assert Log(store, clock=CLOCK).since(BRANCH, 0)[:3] == made


# -- entries that are not what they should be --------------------------------------------------------------------------


def test_an_entry_of_another_branch_or_place_is_refused_by_name(store: MemoryStore) -> None:
    filled(store, 3)
    filled(store, 1, branch="other")
    for source in (paths.entry(BRANCH, 1), paths.entry("other", 1)):
        store.put(paths.entry(BRANCH, 2), store.get(source))
        with pytest.raises(FormatError, match="belongs elsewhere") as refused:
            Log(store, clock=CLOCK).read(BRANCH, 2)
        assert paths.entry(BRANCH, 2) in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b"[]", b"{}", b'{"format":1}', b'{"format":"1"}', b'{"format":1,"commit":3}', b"[" * 100_000],
    ids=["empty", "cut", "binary", "list", "no_format", "no_members", "format_in_words", "wrong_member", "deep"],
)
def test_a_damaged_entry_is_refused_by_name(store: MemoryStore, body: bytes) -> None:
    filled(store, 3)
    path = paths.entry(BRANCH, 3)
    store.put(path, body)
    for attempt in (
        lambda: Log(store, clock=CLOCK).head(BRANCH),
        lambda: Log(store, clock=CLOCK).since(BRANCH, 1),
        lambda: put(Log(store, clock=CLOCK), entry(3)),
    ):
        with pytest.raises(FormatError) as refused:
            attempt()
        assert path in str(refused.value)
    assert store.get(path) == body


def test_an_entry_of_a_newer_release_is_refused_with_both_numbers(store: MemoryStore) -> None:
    filled(store, 2)
    path = paths.entry(BRANCH, 2)
    store.put(path, json.dumps({**json.loads(store.get(path)), "format": 7}).encode())
    with pytest.raises(FormatError, match=rf"format=7, newer than the maximum {FORMAT} .*upgrade") as refused:
        Log(store, clock=CLOCK).head(BRANCH)
    assert refused.value.code == "format_newer"


def test_an_entry_that_is_missing_in_the_middle_is_refused_by_name(store: MemoryStore) -> None:
    filled(store, 5)
    store.delete(paths.entry(BRANCH, 3))
    log = Log(store, clock=CLOCK)
    with pytest.raises(FormatError, match="entry 3") as refused:
        log.between(BRANCH, 1, 5)
    assert refused.value.code == "entry_missing"
    assert log.between(BRANCH, 4, 5)[0].number == 4


# -- putting -----------------------------------------------------------------------------------------------------------


def test_of_two_entries_of_one_number_the_second_is_refused_and_shown_the_first(store: MemoryStore) -> None:
    log, other = Log(store, clock=CLOCK), Log(store, clock=CLOCK)
    first, second = entry(1), entry(1)
    assert isinstance(put(log, first), Done)
    assert put(other, second) == Refused(first)
    assert other.head(BRANCH) == first


def test_the_same_entry_put_twice_is_done_once(store: MemoryStore) -> None:
    log, mine = Log(store, clock=CLOCK), entry(1)
    assert isinstance(put(log, mine), Done)
    assert isinstance(put(log, mine), Done)
    assert log.since(BRANCH, 0) == [mine]


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.FAIL_BEFORE, Fault.FAIL_AFTER], ids=str)
def test_an_entry_whose_answer_is_lost_a_few_times_is_put_in_the_end(faulty: FaultyStore, fault: Fault) -> None:
    faulty.arm(fault, times=3, kind=RequestKind.PUT_IF_ABSENT)
    log, mine = Log(faulty, clock=CLOCK), entry(1)
    assert isinstance(put(log, mine), Done)
    assert log.since(BRANCH, 0) == [mine]


def test_an_entry_that_was_certainly_not_put_is_no_unknown_outcome(faulty: FaultyStore) -> None:
    faulty.arm(Fault.FAIL_BEFORE, times=FOR_EVER, kind=RequestKind.PUT_IF_ABSENT)
    with pytest.raises(UnavailableError):
        put(Log(faulty, clock=CLOCK), entry(1))


def test_an_entry_that_may_have_been_put_is_an_unknown_outcome_that_names_it(faulty: FaultyStore) -> None:
    faulty.arm(Fault.LOSE_REQUEST, times=FOR_EVER, kind=RequestKind.PUT_IF_ABSENT)
    mine = entry(1)
    with pytest.raises(OutcomeUnknownError, match=mine.commit) as unknown:
        put(Log(faulty, clock=CLOCK), mine)
    assert unknown.value.details == {"commit": mine.commit, "branch": BRANCH, "number": 1}


def test_an_entry_that_was_lost_once_and_then_refused_for_good_is_an_unknown_outcome(faulty: FaultyStore) -> None:
    faulty.arm(Fault.LOSE_REQUEST, kind=RequestKind.PUT_IF_ABSENT)
    faulty.arm(Fault.NO_SPACE, at=2, times=FOR_EVER, kind=RequestKind.PUT_IF_ABSENT)
    with pytest.raises(OutcomeUnknownError):
        put(Log(faulty, clock=CLOCK), entry(1))


def test_an_entry_that_is_refused_for_good_is_refused_at_once(faulty: FaultyStore) -> None:
    faulty.arm(Fault.NO_SPACE, times=FOR_EVER, kind=RequestKind.PUT_IF_ABSENT)
    with pytest.raises(StoreRefused, match="no space"):
        put(Log(faulty, clock=CLOCK), entry(1))
    assert faulty.faults.happened() == {Fault.NO_SPACE: 1}


# -- history -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("count", [3, 4, 5, 8, 15])
def test_folded_history_is_the_same_history(store: MemoryStore, count: int) -> None:
    made = filled(store, count)
    log = Log(store, clock=CLOCK)
    assert log.fold(BRANCH) == count // 4
    assert log.fold(BRANCH) == 0
    fresh = Log(store, clock=CLOCK)
    for first in range(1, count + 1):
        for last in range(first, count + 1):
            assert fresh.between(BRANCH, first, last) == made[first - 1 : last]
    assert list(fresh.backwards(BRANCH, start=count)) == made[::-1]


@pytest.mark.usefixtures("small_blocks")
def test_folded_history_costs_one_request_for_each_block(faulty: FaultyStore) -> None:
    filled(faulty, 12)
    Log(faulty, clock=CLOCK).fold(BRANCH)
    reads = faulty.arm(Fault.STALL, at=FOR_EVER, kind=RequestKind.GET)
    assert len(Log(faulty, clock=CLOCK).between(BRANCH, 1, 12)) == 12
    assert reads.seen == 3


@pytest.mark.usefixtures("small_blocks")
def test_folding_again_costs_the_same_at_any_length(store: MemoryStore) -> None:
    counting = CountingStore(store)
    log = Log(counting, clock=CLOCK)
    costs = []
    for first in (1, 13, 81):
        for number in range(first, {1: 13, 13: 81, 81: 200}[first]):
            put(log, entry(number))
        log.fold(BRANCH)
        counting.reset()
        assert log.fold(BRANCH) == 0
        costs.append(counting.reset())
    assert costs == [{RequestKind.GET: 1, RequestKind.LIST: 1}] * 3


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "body", [b"", b"\n\n\n", b"{}\n{}\n{}\n{}", b"nonsense", None], ids=["empty", "blank", "hollow", "words", "foreign"]
)
def test_a_damaged_checkpoint_is_passed_over_and_made_again(store: MemoryStore, body: bytes | None) -> None:
    made = filled(store, 8)
    log = Log(store, clock=CLOCK)
    log.fold(BRANCH)
    good = store.get(paths.checkpoint(BRANCH, 4))
    store.put(paths.checkpoint(BRANCH, 4), store.get(paths.checkpoint(BRANCH, 8)) if body is None else body)
    assert log.since(BRANCH, 0) == made
    assert log.fold(BRANCH) == 1
    assert log.fold(BRANCH) == 0
    assert store.get(paths.checkpoint(BRANCH, 4)) == good


@pytest.mark.usefixtures("small_blocks")
def test_a_checkpoint_that_cannot_be_read_now_is_passed_over(faulty: FaultyStore) -> None:
    made = filled(faulty, 8)
    Log(faulty, clock=CLOCK).fold(BRANCH)
    faulty.arm(Fault.NO_SPACE, times=FOR_EVER, kind=RequestKind.GET, path_part=paths.CHECKPOINTS)
    assert Log(faulty, clock=CLOCK).since(BRANCH, 0) == made


# -- very many types ---------------------------------------------------------------------------------------------------

MANY = limits.WHOLE_MAP_TYPES_MAX + 5


def of_many_types(count: int) -> list[Record]:
    """Entries of a graph with very many types: each changes one, some add one, some remove one."""
    tables = {f"node:T{each:03}": Pin(f"nodes/{each}", 1, 0, 0) for each in range(MANY)}
    made = []
    for number in range(1, count + 1):
        tables = {**tables, f"node:T{number % 7:03}": Pin(f"nodes/{number % 7}", 2**63 + number, number, number)}
        if number % 5 == 0:
            tables[f"node:New{number}"] = Pin(f"nodes/new{number}", 1)
        if number % 6 == 0:
            tables = {key: pin for key, pin in tables.items() if key != f"node:T{number + 10:03}"}
        made.append(entry(number, tables=tables))
    return made


@pytest.mark.parametrize("writers", [1, 3], ids=["one_writer", "three_writers_by_turns"])
def test_entries_of_very_many_types_are_small_and_read_back_whole(store: MemoryStore, writers: int) -> None:
    made = of_many_types(70)
    logs = [Log(store, clock=CLOCK) for _ in range(writers)]
    for number, each in enumerate(made):
        logs[number % writers].head(BRANCH)
        assert isinstance(put(logs[number % writers], each), Done)
    sizes = [len(store.get(paths.entry(BRANCH, each.number))) for each in made]
    whole = [number for number, size in enumerate(sizes, 1) if size > 10_000]
    assert 3 <= len(whole) <= 4 * writers
    fresh = Log(store, clock=CLOCK)
    for each in (made[40], made[3], made[69], made[33]):
        assert fresh.read(BRANCH, each.number) == each
    assert fresh.head(BRANCH) == made[-1]
    assert fresh.since(BRANCH, 0) == made


@pytest.mark.usefixtures("small_blocks")
def test_folded_entries_of_very_many_types_read_back_whole(store: MemoryStore) -> None:
    made = of_many_types(9)
    log = Log(store, clock=CLOCK)
    for each in made:
        put(log, each)
    log.fold(BRANCH)
    assert Log(store, clock=CLOCK).since(BRANCH, 0) == made


def test_a_graph_that_grows_beyond_the_bound_and_shrinks_again_reads_back_whole(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WHOLE_MAP_TYPES_MAX", 3)
    log = Log(store, clock=CLOCK)
    made = []
    for number, types in enumerate([2, 4, 5, 4, 3, 2, 0, 4, 6, 4], 1):
        tables = {f"node:T{each}": Pin(f"nodes/{each}", 2**63 + number * (each % 2)) for each in range(types)}
        made.append(entry(number, tables=tables))
        put(log, made[-1])
    assert Log(store, clock=CLOCK).since(BRANCH, 0) == made


@pytest.mark.parametrize("number", [2, 3, 99, 0, -1])
def test_an_entry_that_counts_from_itself_or_from_nowhere_is_refused(store: MemoryStore, number: int) -> None:
    for each in of_many_types(2):
        put(Log(store, clock=CLOCK), each)
    path = paths.entry(BRANCH, 2)
    document = json.loads(store.get(path))
    document.pop("tables", None)
    document["tables_since"] = {"number": number, "changed": {}, "removed": []}
    store.put(path, json.dumps(document).encode())
    with pytest.raises(FormatError):
        Log(store, clock=CLOCK).read(BRANCH, 2)


# -- names -------------------------------------------------------------------------------------------------------------


def test_branches_are_listed_in_order_and_folders_that_are_no_branch_are_not(store: MemoryStore) -> None:
    names = ["b", "a/b", "ü", "100%", "..", "a b", MAIN]
    for name in names:
        filled(store, 1, branch=name)
    for folder in ("%zz", "a%2fb", "raw name", "%FF", "ünencoded"):
        store.put(f"{paths.LOGS}{folder}/file", b"")
    assert Log(store, clock=CLOCK).branch_names() == sorted(names)


def test_every_entry_has_an_id_of_its_own() -> None:
    assert all(ids.is_ulid(entry(1).commit) for _ in range(3))


# -- entries of pruned commits -----------------------------------------------------------------------------------------


def test_an_entry_that_a_slow_sweep_erased_after_it_was_cut_is_nobodys_base(store: MemoryStore) -> None:
    filled(store, 5)
    stalled, sweeper = Log(store, clock=CLOCK), Log(store, clock=CLOCK)
    base = stalled.read(BRANCH, 2)
    assert base is not None
    sweeper.floors.raise_to(BRANCH, 4)
    sizes = dict.fromkeys(range(1, 6), 1000)
    assert list(sweeper.cut(BRANCH, {1, 2, 3}, listed=sizes, floor=4)) == [1, 2, 3]
    sweeper.replace_erased(BRANCH, [replace(base, erased=True)])
    assert isinstance(stalled.put(entry(3), after=base), Baseless)


def test_the_entries_around_an_erased_one_are_read_as_before(store: MemoryStore) -> None:
    made = filled(store, 5)
    log = Log(store, clock=CLOCK)
    third = log.read(BRANCH, 3)
    assert third is not None
    log.replace_erased(BRANCH, [replace(third, message=None, erased=True)])
    assert [each.commit for each in Log(store, clock=CLOCK).between(BRANCH, 1, 5)] == [each.commit for each in made]
    assert log.is_there(third)
    assert isinstance(put(Log(store, clock=CLOCK), entry(6)), Done)
