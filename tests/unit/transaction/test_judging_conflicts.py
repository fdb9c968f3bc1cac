"""What others wrote since our base, against what we read and wrote: rebase, run again, or give up."""

from dataclasses import replace

import pytest

from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.model.conflict import Conflict, DeclaredDead, ExpectedVersionMismatch, KeyConflict, ReadSetChanged
from omnigraph.model.footprint import Footprint, TokenKind, TypeFootprint, has_conflict, tokens
from omnigraph.transaction.conflicts import Broken, Clashing, Clear, Judgement, judge, message_for, mismatches

PERSON, COMPANY = "node:Person", "node:Company"


def entry(number: int, part: TypeFootprint | None = None, *, type_key: str = PERSON, **more: object) -> Record:
    plain = Record(
        commit=f"{number:026d}",
        branch="main",
        number=number,
        kind=CommitKind.MUTATION,
        parent=f"{number - 1:026d}",
        schema="s",
        tables={PERSON: Pin("nodes/p", 10 + number), COMPANY: Pin("nodes/c", 20 + number)},
        created_at_us=number,
        footprint=Footprint({type_key: part} if part else {}),
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # members by name, of their own types


def reads(*ids: str) -> TypeFootprint:
    return TypeFootprint(reads=tokens(TokenKind.ID, ids))


def writes(*ids: str) -> TypeFootprint:
    return TypeFootprint(writes=tokens(TokenKind.ID, ids))


READS_ALL = TypeFootprint(reads_whole=True)
WRITES_ALL = TypeFootprint(writes_whole=True)
LAYS_OUT = TypeFootprint(changes_layout_only=True)
BASE = entry(5)


@pytest.mark.parametrize(
    ("ours", "theirs", "clash"),
    [
        (writes("a"), writes("a"), True),
        (writes("a"), writes("b"), False),
        (reads("a"), writes("a"), True),
        (reads("a"), writes("b"), False),
        (writes("a"), reads("a"), False),
        (reads("a"), reads("a"), False),
        (READS_ALL, writes("b"), True),
        (READS_ALL, reads("b"), False),
        (WRITES_ALL, writes("b"), True),
        (writes("a"), WRITES_ALL, True),
        (reads("a"), WRITES_ALL, True),
        (READS_ALL, WRITES_ALL, True),
        (WRITES_ALL, WRITES_ALL, True),
        (writes("a"), READS_ALL, False),
        (LAYS_OUT, WRITES_ALL, False),
        (writes("a"), LAYS_OUT, False),
        (WRITES_ALL, LAYS_OUT, False),
    ],
)
def test_two_writes_clash_when_the_earlier_changed_what_the_later_read_or_wrote(
    ours: TypeFootprint, theirs: TypeFootprint, clash: bool
) -> None:
    assert has_conflict(ours, theirs) is clash


def test_different_kinds_of_tokens_of_one_name_are_different() -> None:
    kinds = [tokens(kind, ["a"]) for kind in TokenKind]
    assert len(frozenset().union(*kinds)) == len(kinds)


@pytest.mark.parametrize(
    ("ours", "newer", "expected"),
    [
        (writes("a"), [], Clear),
        (writes("a"), [entry(6, writes("b"))], Clear),
        (writes("a"), [entry(6, writes("a"), type_key=COMPANY)], Clear),
        (writes("a"), [entry(6, writes("b")), entry(7, writes("a"))], Clashing),
        (writes("a"), [entry(6, LAYS_OUT)], Clear),
        (LAYS_OUT, [entry(6, writes("b"))], Clear),
        (LAYS_OUT, [entry(6, WRITES_ALL)], Clashing),
        (LAYS_OUT, [entry(6, LAYS_OUT)], Clashing),
        (LAYS_OUT, [entry(6, LAYS_OUT, type_key=COMPANY)], Clear),
        (writes("a"), [entry(6, schema="t")], Broken),
        (writes("a"), [entry(6, kind=CommitKind.DELETE)], Broken),
        (writes("a"), [entry(6, kind=CommitKind.DELETE), entry(7, kind=CommitKind.FORK)], Broken),
        (writes("a"), [entry(6, aborted=("mine",))], Broken),
        (writes("a"), [entry(6, aborted=("another's",))], Clear),
    ],
)
def test_a_lost_race_is_judged_by_what_the_others_wrote(
    ours: TypeFootprint, newer: list[Record], expected: type[Judgement]
) -> None:
    assert type(judge(Footprint({PERSON: ours}), BASE, newer, intent="mine")) is expected


def test_a_clash_names_the_type_and_both_versions() -> None:
    judged = judge(Footprint({PERSON: writes("a")}), BASE, [entry(6, writes("a")), entry(7)])
    assert judged == Clashing((ReadSetChanged(PERSON, "15", "17"),))


def test_every_type_that_clashes_is_named_once() -> None:
    theirs = entry(6, footprint=Footprint({PERSON: writes("a"), COMPANY: writes("x")}))
    ours = Footprint({PERSON: writes("a"), COMPANY: writes("x")})
    judged = judge(ours, BASE, [theirs, replace(theirs, number=7)])
    assert isinstance(judged, Clashing)
    assert [each.member for each in judged.conflicts if isinstance(each, ReadSetChanged)] == [COMPANY, PERSON]


def test_a_writer_declared_dead_learns_which_commit_said_so() -> None:
    judged = judge(Footprint(), BASE, [entry(6, aborted=("mine",))], intent="mine")
    assert judged == Broken((DeclaredDead("mine", entry(6).commit),))


def test_expected_versions_are_all_compared_and_an_unknown_type_is_at_zero() -> None:
    expected = {PERSON: 15, COMPANY: 1, "node:Ghost": 3}
    assert mismatches(expected, BASE) == (
        ExpectedVersionMismatch(COMPANY, 1, 25),
        ExpectedVersionMismatch("node:Ghost", 3, 0),
    )


@pytest.mark.parametrize(
    ("conflict", "words"),
    [
        (ExpectedVersionMismatch(PERSON, 3, 4), [PERSON, "3", "4"]),
        (ReadSetChanged(PERSON, "3", "4"), [PERSON, "3", "4"]),
        (ReadSetChanged("schema", "old", "new"), ["schema", "old", "new"]),
        (ReadSetChanged("branch", "c1", "c2"), ["branch", "c2"]),
        (KeyConflict(PERSON, "ada"), ["node type 'Person'", "'ada'"]),
        (DeclaredDead("i1", "c2"), ["i1", "c2"]),
    ],
)
def test_a_conflict_in_words_names_what_was_expected_and_what_is_there(conflict: Conflict, words: list[str]) -> None:
    sentence = message_for(conflict)
    for word in words:
        assert word in sentence
