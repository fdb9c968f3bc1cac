"""Answers of conditional puts that get lost: never done twice, never lost, and never guessed at."""

from collections.abc import Callable

import pytest
from tests.support import operations as op
from tests.support.cuts import FOR_EVER, Copies, at_every_request
from tests.support.interrupted_writes import interrupt, set_aside
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, SIDE, Kind, next_write, opened

from omnigraph.branch import branches, tags
from omnigraph.errors import AlreadyExistsError, OutcomeUnknownError, UnavailableError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore, OutcomeUnknown, StoreTransient
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

LOSSES = [
    pytest.param(Fault.LOSE_ANSWER, id="done_and_lost"),
    pytest.param(Fault.LOSE_REQUEST, id="not_done_and_lost"),
    pytest.param(Fault.FAIL_AFTER, id="done_and_called_failed"),
]
# Kinds that make conditional puts of their own; the others differ only in what they stage.
OWN_PUTS = (
    "upsert",
    "write_with_a_key",
    "branch_create",
    "branch_create_again",
    "branch_delete",
    "tag_create",
    "tag_delete",
)
CASES = [
    pytest.param(
        kind,
        settings,
        id=f"{kind.name}{'-noted' if settings is NOTED else ''}",
        marks=[] if kind.name in OWN_PUTS else pytest.mark.torture,
    )
    for kind in KINDS
    for settings in (SETTINGS, NOTED)
    if kind.leaves_intents or settings is SETTINGS
]


@pytest.mark.parametrize("fault", LOSSES)
@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_a_write_that_loses_one_answer_asks_and_is_done_once(
    kind: Kind, settings: Settings, fault: Fault, copies: Copies
) -> None:
    done = opened(copies.fresh())
    kind.act(done)
    expected = observed(done)

    def work(store: FaultyStore) -> None:
        kind.act(opened(store, settings=settings))

    losses = 0
    for cut in at_every_request(copies, fault, work, kind=RequestKind.PUT_IF_ABSENT):
        assert cut.raised is None, cut.where
        parts = opened(cut.store)
        assert observed(parts) == expected, cut.where
        next_write(parts)
        check_graph(parts)
        losses += 1
    assert losses


@pytest.mark.parametrize("fault", LOSSES)
def test_an_init_that_loses_one_answer_asks_and_makes_one_graph(fault: Fault, empty: Copies) -> None:
    losses = 0
    for cut in at_every_request(empty, fault, made, kind=RequestKind.PUT_IF_ABSENT):
        assert cut.raised is None, cut.where
        parts = opened(cut.store)
        assert len(entries(parts)) == 1
        next_write(parts)
        check_graph(parts)
        losses += 1
    assert losses == 2


def made(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=SETTINGS, clock=ManualClock())


def finishable(parts: GraphContext) -> None:
    interrupt(parts, op.insert(PERSON, {"n": 1}))


def hopeless(parts: GraphContext) -> None:
    intent = interrupt(parts, op.update(PERSON, ["a"], 5))
    with set_aside(parts, intent):
        write(parts, MAIN, op.upsert(PERSON, {"a": 9}))


@pytest.mark.parametrize("fault", LOSSES)
@pytest.mark.parametrize("leave", [finishable, hopeless], ids=["finish", "undo"])
def test_a_recovery_that_loses_one_answer_asks_and_is_told_once(
    leave: Callable[[GraphContext], None], fault: Fault, copies: Copies
) -> None:
    store = copies.fresh()
    leave(opened(store))
    spoilt = copies.of(store)
    expected = observed(opened(spoilt.fresh()))
    losses = 0
    for cut in at_every_request(spoilt, fault, opened, kind=RequestKind.PUT_IF_ABSENT):
        assert cut.raised is None, cut.where
        parts = opened(cut.store)
        assert observed(parts) == expected, cut.where
        check_graph(parts)
        losses += 1
    assert losses == 1


# -- answers that stay lost --------------------------------------------------------------------------------------------


class GoesDark(ForwardingStore):
    """A store that takes one conditional put below a folder, does it or not, and answers nothing from then on."""

    def __init__(self, inner: ObjectStore, folder: str, *, does: bool) -> None:
        super().__init__(inner)
        self._folder = folder
        self._does = does
        self.is_dark = False

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if self.is_dark:
            raise StoreTransient("nobody answers", path=path)
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(self._folder):
            if self._does:
                send()
            self.is_dark = True
            raise OutcomeUnknown("nobody answered", path=path)
        return send()


DONE_OR_NOT = pytest.mark.parametrize("does", [True, False], ids=["done", "not_done"])


@pytest.mark.parametrize(
    "act",
    [
        lambda parts: write(parts, MAIN, op.append(PERSON, {"n": 1})),
        lambda parts: write(parts, MAIN, op.noted(op.append(PERSON, {"n": 1}))),
        lambda parts: branches.create(parts, "new"),
        lambda parts: branches.delete(parts, SIDE),
    ],
    ids=["write", "noted_write", "branch_create", "branch_delete"],
)
@DONE_OR_NOT
def test_an_entry_whose_answers_stay_lost_is_unknown_to_the_caller_and_known_to_the_log(
    act: Callable[[GraphContext], object], does: bool, copies: Copies
) -> None:
    whole = copies.fresh()
    before = observed(opened(whole))
    with pytest.raises(OutcomeUnknownError) as raised:
        act(opened(GoesDark(whole, paths.LOGS, does=does)))
    parts = open_root(whole, read_only=True)
    commit = raised.value.details["commit"]
    landed = [each for name in parts.log.branch_names() for each in entries(parts, name) if each.commit == commit]
    assert len(landed) == does
    assert (observed(parts) != before) is does
    parts = opened(whole)
    next_write(parts)
    check_graph(parts)


@DONE_OR_NOT
@pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
def test_a_request_sent_again_under_its_key_after_an_unknown_outcome_is_done_once(
    settings: Settings, does: bool, copies: Copies
) -> None:
    whole = copies.fresh()
    options = WriteOptions(idempotency_key="once")
    with pytest.raises(OutcomeUnknownError):
        write(
            opened(GoesDark(whole, paths.LOGS, does=does), settings=settings),
            MAIN,
            op.append(PERSON, {"n": 1}),
            options,
        )
    parts = opened(whole, settings=settings)
    for _ in range(2):
        receipt = write(parts, MAIN, op.append(PERSON, {"n": 1}), options)
        assert receipt.entry is not None
        assert receipt.entry.idempotency_key == "once"
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_a_key_whose_note_was_lost_is_not_forgotten(copies: Copies) -> None:
    store = copies.fresh()
    parts = opened(store)
    options = WriteOptions(idempotency_key="once")
    # The note of the key gets lost, and the later one that says where the commit is cannot be written either.
    store.arm(Fault.LOSE_REQUEST, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.KEYS)
    store.arm(Fault.NO_SPACE, kind=RequestKind.PUT, path_part=paths.KEYS)
    write(parts, MAIN, op.append(PERSON, {"n": 1}), options)
    store.disarm()
    assert write(parts, MAIN, op.append(PERSON, {"n": 1}), options).replayed
    check_graph(parts)


def test_a_key_that_cannot_be_noted_stops_the_write_before_its_first_effect(copies: Copies) -> None:
    store = copies.fresh()
    parts = opened(store)
    before = observed(parts)
    store.arm(Fault.LOSE_REQUEST, times=FOR_EVER, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.KEYS)
    with pytest.raises(UnavailableError):
        write(parts, MAIN, op.append(PERSON, {"n": 1}), WriteOptions(idempotency_key="once"))
    store.disarm()
    assert observed(parts) == before
    next_write(parts)
    check_graph(parts)


@DONE_OR_NOT
@pytest.mark.parametrize("act", ["create", "delete"])
def test_a_tag_whose_answers_stay_lost_is_unknown_and_then_as_its_log_says(
    act: str, does: bool, copies: Copies
) -> None:
    whole = copies.fresh()
    parts = opened(GoesDark(whole, paths.TAGS, does=does))
    with pytest.raises(OutcomeUnknownError):
        if act == "create":
            tags.create(parts, "new", parts.log.live_head(MAIN))
        else:
            tags.delete(parts, "named")
    after = {"create": ["named", "new"], "delete": []}[act]
    assert tags.names(opened(whole)) == (after if does else ["named"])


@DONE_OR_NOT
def test_an_init_whose_answers_stay_lost_is_unknown_and_can_be_run_again(does: bool, empty: Copies) -> None:
    for folder in (paths.STAMP, paths.LOGS):
        whole = empty.fresh()
        with pytest.raises(OutcomeUnknownError):
            op.new_graph(GoesDark(whole, folder, does=does), settings=SETTINGS, clock=ManualClock())
        if folder == paths.LOGS and does:
            with pytest.raises(AlreadyExistsError):
                made(whole)
        else:
            made(whole)
        parts = opened(whole)
        next_write(parts)
        check_graph(parts)


def test_two_writers_that_both_lose_their_answers_are_told_apart_by_their_ids(copies: Copies) -> None:
    store = copies.fresh()
    parts = opened(store)
    mine = parts.log.live_head(MAIN)
    # The other is first; ours is refused, and the refusal gets lost too.
    write(opened(store), MAIN, op.insert(COMPANY, {"other": 1}))
    store.arm(Fault.LOSE_REQUEST, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.LOGS)
    receipt = write(parts, MAIN, op.insert(PERSON, {"mine": 1}))
    store.disarm()
    assert receipt.entry is not None
    assert receipt.entry.number == mine.number + 2
    assert rows_of(parts, COMPANY)["other"] == 1
    check_graph(parts)
