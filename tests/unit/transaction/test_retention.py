"""Which commits are kept and which are shown, told by the head alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.errors import NotFoundError, ReclaimedError
from omnigraph.model.commit import MAIN
from omnigraph.model.retention import NOTHING_PRUNED, Pruned
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.pruning.retention import check_kept, check_listed, is_kept, still_kept
from omnigraph.transaction.write import write

PRUNED = Pruned(floor=4, through=6, single=(8,))


@pytest.mark.parametrize(
    ("number", "kept", "listed"),
    [(3, False, False), (4, True, False), (6, True, False), (7, True, True), (8, True, False), (9, True, True)],
)
def test_what_is_marked_is_kept_and_not_shown_and_what_is_below_the_floor_is_neither(
    number: int, kept: bool, listed: bool
) -> None:
    assert (PRUNED.is_kept(number), PRUNED.is_listed(number)) == (kept, listed)


@pytest.mark.parametrize(("number", "following"), [(1, 7), (3, 7), (6, 7), (7, 9), (8, 9), (9, 10)])
def test_the_next_that_is_shown_is_neither_below_the_line_nor_marked_by_itself(number: int, following: int) -> None:
    assert PRUNED.next_listed(number) == following


def test_of_a_branch_that_was_never_pruned_everything_is_shown() -> None:
    assert NOTHING_PRUNED.is_kept(1)
    assert NOTHING_PRUNED.is_listed(1)


def test_the_head_tells_of_every_entry_and_says_what_is_gone(tmp_path: Path) -> None:
    parts = op.new_graph(str(tmp_path), settings=Settings(durability="process"))
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    head = replace(parts.log.live_head(MAIN), pruned=PRUNED)

    check_listed(head, 7)
    with pytest.raises(ReclaimedError, match=r"number 6 of branch 'main' was pruned; the next .* number 7$") as caught:
        check_listed(head, 6)

    assert caught.value.code == "version_reclaimed"
    assert caught.value.details == {"branch": MAIN, "number": 6, "next_number": 7}


def test_what_a_name_held_before_it_was_used_again_is_kept_by_it_no_more(tmp_path: Path) -> None:
    parts = op.new_graph(str(tmp_path), settings=Settings(durability="process"))
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    born_again = replace(parts.log.live_head(MAIN), number=8, born=6)

    assert [is_kept(born_again, number) for number in (5, 6, 8)] == [False, True, True]


def test_a_commit_is_asked_for_afresh_and_none_is_kept_of_a_branch_that_is_not_there(tmp_path: Path) -> None:
    parts = op.new_graph(str(tmp_path), settings=Settings(durability="process"))
    first = parts.log.live_head(MAIN)

    assert still_kept(parts, MAIN, first.number)
    check_kept(parts, first)
    assert not still_kept(parts, MAIN, first.number + 1)
    assert not still_kept(parts, "nowhere", 1)
    with pytest.raises(NotFoundError, match="'nowhere'"):
        check_kept(parts, replace(first, branch="nowhere"))
