"""Errors in the middle of a write, at every request: the process lives on, and so does its handle."""

from dataclasses import dataclass, field

import pytest
from tests.support.cuts import FOR_EVER, Copies, at_every_request
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, Kind, next_write, opened

from omnigraph import limits
from omnigraph.errors import GraphError, OutcomeUnknownError
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, observed
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings

# Each of the others takes some of the same requests.
OFTEN = {
    ("large_insert", True),
    ("write_with_a_key", True),
    ("add_table_with_rows", True),
    ("upsert", False),
    ("branch_create_again", False),
    ("tag_delete", False),
}


def cases(*often: str) -> list[object]:
    """Every kind small and under an intent; all but a few, or but these, only in the long run."""
    return [
        pytest.param(
            kind,
            settings,
            id=f"{kind.name}{'-noted' if noted else ''}",
            marks=[] if (kind.name, noted) in OFTEN and (not often or kind.name in often) else pytest.mark.torture,
        )
        for kind in KINDS
        for noted, settings in ((False, SETTINGS), (True, NOTED))
        if kind.leaves_intents or not noted
    ]


@pytest.fixture(autouse=True)
def _hints_with_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that those steps fail too."""
    monkeypatch.setattr(limits, "HINT_EVERY_ENTRIES", 1)


@dataclass(slots=True)
class Doing:
    """Does one kind of write on one graph after another, and keeps the handle it did it with."""

    kind: Kind
    settings: Settings
    handles: dict[str, GraphContext] = field(default_factory=dict)

    def __call__(self, store: FaultyStore) -> None:
        parts = self.handles[store.uri] = opened(store, settings=self.settings)
        self.kind.act(parts)

    def handle(self, store: FaultyStore) -> GraphContext:
        """The handle that met the error; a new one where not even opening came through."""
        return self.handles.get(store.uri) or opened(store, settings=self.settings)


def went_on(parts: GraphContext) -> object:
    next_write(parts)
    check_graph(parts)
    return observed(parts)


def check_errors(
    copies: Copies, kind: Kind, settings: Settings, fault: Fault, *, times: int, request: RequestKind | None = None
) -> int:
    untouched, done = opened(copies.fresh()), opened(copies.fresh(), settings=settings)
    kind.act(done)
    before, after = observed(untouched), observed(done)
    before_next, after_next = went_on(untouched), went_on(done)
    doing = Doing(kind, settings)
    cuts = 0
    # What only moves names has nothing to make durable.
    or_none = request is RequestKind.MAKE_DURABLE
    for cut in at_every_request(copies, fault, doing, times=times, kind=request, or_none=or_none):
        parts = doing.handle(cut.store)
        seen = observed(parts)
        if cut.raised is None:
            assert seen == after, f"acknowledged, but not there: {cut.where}"
            assert went_on(parts) == after_next, cut.where
        else:
            assert isinstance(cut.raised, GraphError), cut.where
            assert seen in (before, after), cut.where
            later = went_on(parts)
            assert later in (before_next, after_next), cut.where
            if seen == after:
                assert later == after_next, cut.where
            if fault in (Fault.FAIL_BEFORE, Fault.NO_SPACE) and not said_to_be_unsure(cut.raised):
                assert later == before_next, f"refused, but done: {cut.where}: {cut.raised!r}"
        cuts += 1
    return cuts


def said_to_be_unsure(raised: GraphError) -> bool:
    return isinstance(raised, OutcomeUnknownError) or "look in the log" in " ".join(getattr(raised, "__notes__", ()))


@pytest.mark.parametrize(
    "fault",
    [Fault.NO_SPACE, Fault.LOSE_ANSWER, pytest.param(Fault.FAIL_BEFORE, marks=pytest.mark.torture)],
    ids=str,
)
@pytest.mark.parametrize(("kind", "settings"), cases())
def test_one_failed_request_leaves_the_state_before_or_after_and_the_handle_usable(
    kind: Kind, settings: Settings, fault: Fault, copies: Copies
) -> None:
    assert check_errors(copies, kind, settings, fault, times=1)


@pytest.mark.parametrize(
    "fault", [Fault.FAIL_BEFORE, pytest.param(Fault.LOSE_REQUEST, marks=pytest.mark.torture)], ids=str
)
@pytest.mark.parametrize(("kind", "settings"), cases())
def test_a_store_that_fails_from_some_request_on_and_comes_back_finds_the_handle_usable(
    kind: Kind, settings: Settings, fault: Fault, copies: Copies
) -> None:
    assert check_errors(copies, kind, settings, fault, times=FOR_EVER)


@pytest.mark.torture
@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "from_then_on"])
@pytest.mark.parametrize("fault", [Fault.FAIL_AFTER, Fault.NO_SPACE, Fault.LOSE_ANSWER, Fault.LOSE_REQUEST], ids=str)
@pytest.mark.parametrize(("kind", "settings"), cases())
def test_any_failure_at_any_request_leaves_the_state_before_or_after_and_the_handle_usable(
    kind: Kind, settings: Settings, fault: Fault, times: int, copies: Copies
) -> None:
    assert check_errors(copies, kind, settings, fault, times=times)


@pytest.mark.parametrize("request_kind", [RequestKind.GET, RequestKind.LIST, RequestKind.MAKE_DURABLE], ids=str)
@pytest.mark.parametrize(("kind", "settings"), cases("write_with_a_key"))
def test_a_read_or_a_sync_that_fails_leaves_the_state_before_or_after_and_the_handle_usable(
    kind: Kind, settings: Settings, request_kind: RequestKind, copies: Copies
) -> None:
    check_errors(copies, kind, settings, Fault.FAIL_BEFORE, times=1, request=request_kind)
