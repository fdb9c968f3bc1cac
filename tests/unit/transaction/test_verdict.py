"""Every row of the table by which an interrupted write is judged. No store, no tables: only facts."""

from dataclasses import replace

import pytest

from omnigraph.model.change import NO_CHANGES
from omnigraph.model.commit import RECOVERY_ACTOR, CommitKind, Pin, Record, Recovery, RecoveryKind
from omnigraph.model.footprint import Footprint, TokenKind, TypeFootprint, tokens
from omnigraph.model.intent import Completed, Intent, Writer
from omnigraph.transaction.conflicts import AlreadyDone, Facts, Finish, Leave, Undo, Verdict, verdict

PERSON, COMPANY = "node:Person", "node:Company"
INTENT = "01INTENT"
PINS = {PERSON: Pin("nodes/p", 1), COMPANY: Pin("nodes/c", 1)}


def touching(type_key: str, *ids: str) -> Footprint:
    return Footprint({type_key: TypeFootprint(writes=tokens(TokenKind.ID, ids))})


def entry(number: int, kind: CommitKind = CommitKind.MUTATION, **more: object) -> Record:
    plain = Record(
        commit=f"{number:026d}",
        branch="main",
        number=number,
        kind=kind,
        parent=f"{number - 1:026d}",
        schema="s",
        tables=PINS,
        created_at_us=number,
    )
    return replace(plain, **more)  # type: ignore[arg-type]  # members by name, of their own types


BASE = entry(5)
NOTE = Intent(
    id=INTENT,
    kind=CommitKind.LOAD,
    branch="main",
    base_number=BASE.number,
    base_commit=BASE.commit,
    actor="ada",
    writer=Writer("host", 1, "0"),
    tables=PINS,
    created_at_us=5,
)
STAGED = Completed(
    intent=INTENT,
    schema="s",
    tables={PERSON: Pin("nodes/p", 2**63 + 1)},
    removed=(),
    footprint=touching(PERSON, "a"),
    changes=NO_CHANGES,
    merged_parent=None,
    notes={},
)
READY = Facts(NOTE, STAGED, BASE, (), staged_readable=True)
AUDIT = Recovery(RecoveryKind.FINISHED, INTENT, CommitKind.LOAD, "ada", ())


def recovering(number: int, **more: object) -> Record:
    return entry(number, CommitKind.RECOVER, actor=RECOVERY_ACTOR, **more)


FINISHED_BY_ITSELF = entry(6, intent=INTENT)
FINISHED_BY_A_HEALER = recovering(6, intent=INTENT, recovery=AUDIT)
UNDONE = recovering(6, aborted=(INTENT,), recovery=replace(AUDIT, kind=RecoveryKind.UNDONE))
AUDITED_LATER = recovering(8, recovery=AUDIT)
OTHER_ROW = entry(6, footprint=touching(PERSON, "b"))
OTHER_TYPE = entry(6, footprint=touching(COMPANY, "a"))
SAME_ROW = entry(6, footprint=touching(PERSON, "a"))
OVERWRITTEN = entry(6, footprint=Footprint({PERSON: TypeFootprint(writes_whole=True)}))
COMPACTED = entry(6, CommitKind.COMPACT, footprint=Footprint({PERSON: TypeFootprint(changes_layout_only=True)}))
OTHER_SCHEMA = entry(6, CommitKind.SCHEMA, schema="t")
DELETED = entry(6, CommitKind.DELETE, tables={})
FORKED_AGAIN = entry(7, CommitKind.FORK)
MARK = entry(6, CommitKind.BARRIER)
MOVED_COMPANY = replace(OTHER_TYPE, tables={**PINS, COMPANY: Pin("nodes/c", 2)})

TABLE: list[tuple[str, Facts, type[Verdict]]] = [
    ("nothing happened since and all is staged", READY, Finish),
    ("others wrote other rows of the type", replace(READY, newer=[OTHER_ROW]), Finish),
    ("others wrote another type", replace(READY, newer=[OTHER_TYPE]), Finish),
    ("others only moved rows about", replace(READY, newer=[COMPACTED]), Finish),
    ("others ended another interrupted write", replace(READY, newer=[recovering(6, aborted=("01OTHER",))]), Finish),
    ("not every table was staged", replace(READY, completed=None, staged_readable=None), Undo),
    ("a staged file is gone", replace(READY, staged_readable=False), Undo),
    ("nobody can say whether the staged files are there", replace(READY, staged_readable=None), Leave),
    ("others wrote the same row", replace(READY, newer=[SAME_ROW]), Undo),
    ("others overwrote the type", replace(READY, newer=[OVERWRITTEN]), Undo),
    ("a conflict behind an entry that is none", replace(READY, newer=[OTHER_ROW, replace(SAME_ROW, number=7)]), Undo),
    ("the schema changed", replace(READY, newer=[OTHER_SCHEMA]), Undo),
    ("the branch was deleted", replace(READY, newer=[DELETED]), Undo),
    ("the branch was deleted and made anew", replace(READY, newer=[DELETED, FORKED_AGAIN]), Undo),
    ("its base is gone", replace(READY, base=None), Undo),
    ("its base is another commit", replace(READY, base=replace(BASE, commit="0" * 26)), Undo),
    ("its writer published it", replace(READY, newer=[FINISHED_BY_ITSELF]), AlreadyDone),
    ("its writer published it and others went on", replace(READY, newer=[FINISHED_BY_ITSELF, SAME_ROW]), AlreadyDone),
    ("a healer published it", replace(READY, newer=[FINISHED_BY_A_HEALER]), AlreadyDone),
    ("a healer undid it", replace(READY, newer=[UNDONE]), AlreadyDone),
    (
        "it was published, and its staged files are gone",
        replace(READY, newer=[FINISHED_BY_ITSELF], staged_readable=False),
        AlreadyDone,
    ),
    (
        "it was published, and the branch deleted since",
        replace(READY, newer=[FINISHED_BY_ITSELF, replace(DELETED, number=7)]),
        AlreadyDone,
    ),
    (
        "the same request was carried out under its key",
        replace(
            READY,
            completed=replace(STAGED, options={"idempotency_key": "once"}),
            newer=[replace(OTHER_ROW, idempotency_key="once")],
        ),
        Undo,
    ),
    (
        "its caller required the head it started from, and others wrote other rows",
        replace(READY, completed=replace(STAGED, options={"if_commit": BASE.commit}), newer=[OTHER_ROW]),
        Undo,
    ),
    (
        "its caller required the head it started from, and only a mark follows",
        replace(READY, completed=replace(STAGED, options={"if_commit": BASE.commit}), newer=[MARK]),
        Finish,
    ),
    (
        "its caller expected a version that is no more",
        replace(
            READY, completed=replace(STAGED, options={"expected_table_versions": {COMPANY: 1}}), newer=[MOVED_COMPANY]
        ),
        Undo,
    ),
    (
        "its caller expected a version that is still there",
        replace(
            READY, completed=replace(STAGED, options={"expected_table_versions": {PERSON: 1}}), newer=[MOVED_COMPANY]
        ),
        Finish,
    ),
    (
        "another request was carried out under another key",
        replace(
            READY,
            completed=replace(STAGED, options={"idempotency_key": "once"}),
            newer=[replace(OTHER_ROW, idempotency_key="twice")],
        ),
        Finish,
    ),
]


@pytest.mark.parametrize(("facts", "expected"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_the_verdict_on_an_interrupted_write_when(facts: Facts, expected: type[Verdict]) -> None:
    assert type(verdict(facts)) is expected


@pytest.mark.parametrize(
    ("newer", "audited"),
    [
        ([FINISHED_BY_ITSELF], False),
        ([FINISHED_BY_ITSELF, AUDITED_LATER], True),
        ([FINISHED_BY_A_HEALER], True),
        ([UNDONE], True),
    ],
)
def test_a_write_that_has_ended_is_audited_only_if_the_log_does_not_say_so_yet(
    newer: list[Record], audited: bool
) -> None:
    assert verdict(replace(READY, newer=newer)) == AlreadyDone(newer[0], audited)


def test_what_is_finished_is_what_was_staged() -> None:
    assert verdict(READY) == Finish(STAGED)


def test_every_reason_to_undo_or_leave_is_said_in_words() -> None:
    for sentence, facts, _ in TABLE:
        match verdict(facts):
            case Undo(reason) | Leave(reason):
                assert len(reason.split()) > 3, sentence
            case AlreadyDone() | Finish():
                pass
