"""A request sent twice under one key is done once, also when the commit of the first was pruned in between."""

from contextlib import suppress
from pathlib import Path

import pytest

from omnigraph.branch import branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import OutcomeUnknownError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.testing import operations as op
from omnigraph.testing.manual_clock import ManualClock
from omnigraph.testing.operations import PERSON
from omnigraph.transaction.parts import Parts, Settings
from omnigraph.transaction.prune import Policy, prune
from omnigraph.transaction.write import WriteOptions, write

KEYED = WriteOptions(idempotency_key="once")


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    settings = Settings(durability="process", protection_s=0, log_cut_s=0)
    return op.new_graph(str(tmp_path), types=[PERSON], settings=settings, clock=ManualClock())


def forget_what_is_old(parts: Parts, branch: str = MAIN, *, swept: bool = True) -> None:
    for number in range(3):
        write(parts, branch, op.upsert(PERSON, {"other": number}))
    prune(parts, branch, Policy(keep=1, now=True))
    if swept:
        sweep(parts, older_than_s=0)


def die_at(parts: Parts, place: Failpoint) -> None:
    """Write under the key, and die before the note of it can say how that ended."""

    def die() -> None:
        raise Crash

    with suppress(Crash), armed(place, die):
        write(parts, MAIN, op.append(PERSON, {"a": 1}), KEYED)


def test_the_second_request_gets_the_commit_of_the_first_though_that_was_pruned_and_swept(parts: Parts) -> None:
    first = write(parts, MAIN, op.append(PERSON, {"a": 1}), KEYED)
    assert first.entry is not None
    forget_what_is_old(parts)
    assert parts.log.read(MAIN, first.entry.number) is None

    second = write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert second.replayed
    assert second.entry is not None
    assert (second.entry.commit, second.entry.number) == (first.entry.commit, first.entry.number)
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_where_nobody_can_tell_any_more_the_second_is_refused_instead_of_done_twice(parts: Parts) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts)

    with pytest.raises(OutcomeUnknownError, match="whether it was carried out cannot be told"):
        write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_as_long_as_pruned_entries_are_in_the_log_they_tell_what_became_of_the_first(parts: Parts) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)

    second = write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert second.replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_a_first_request_that_never_came_to_anything_keeps_nobody_from_sending_it_again(parts: Parts) -> None:
    die_at(parts, Failpoint.WRITE_PREPARED)
    forget_what_is_old(parts, swept=False)

    assert not write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON) == {"b": 1, "other": 2}


def test_a_key_of_an_earlier_life_of_a_branch_is_free_again(parts: Parts) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.append(PERSON, {"a": 1}), KEYED)
    branches.delete(parts, "side")
    branches.create(parts, "side")
    forget_what_is_old(parts, "side")

    assert not write(parts, "side", op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON, "side") == {"b": 1, "other": 2}
