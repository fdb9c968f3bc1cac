"""What is wrong with a record, and where the record is."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import groupby

from omnigraph.errors import (
    BlobSourceError,
    ConflictError,
    ConstraintError,
    GraphError,
    InvalidRequestError,
    LimitError,
)
from omnigraph.pipeline.load.blocks import lines_at
from omnigraph.pipeline.load.sources import Source


class Phase(IntEnum):
    """When a problem is found; earlier ones are reported first."""

    READING = 0
    VALUE = 1
    IDENTITY = 2
    UNIQUE = 3
    END = 4
    DEGREE = 5


class Unit(StrEnum):
    """What a position counts."""

    LINE = "line"  # of which the byte is known
    RECORD = "record"
    ROW = "row"


class MalformedError(InvalidRequestError):
    """A line that is no JSON object."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One record that cannot be loaded.

    Attributes:
        phase: when it was found.
        source: which file, by its number.
        position: the byte its line begins at, or its own number counted from one.
        error: what is wrong with it.
        rank: of problems of one phase, which is told first.
    """

    phase: Phase
    source: int
    position: int
    error: GraphError
    rank: int = 0

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Sort key: smaller is reported first."""
        return self.phase, self.rank, self.source, self.position


@dataclass(frozen=True, slots=True)
class Located:
    """A problem in words.

    Attributes:
        file: the name of the file; None where the records came without one.
        unit: what `number` counts.
        number: the line, record or row, counted from one.
        reason: what is wrong.
        record: the record itself, where it is a line.
        error: the same as an error, with the place in its message.
    """

    file: str | None
    unit: Unit
    number: int
    reason: str
    record: str | None
    error: GraphError

    def to_dict(self) -> dict[str, object]:
        """For the file of rejects: one JSON object per line."""
        return {"file": self.file, self.unit.value: self.number, "reason": self.reason, "record": self.record}


def located(problems: Iterable[Problem], sources: "tuple[Source, ...]") -> list[Located]:
    """Problems with their places in words; lines are counted now, in one pass over each file.

    Args:
        problems: what was found.
        sources: the files of the load.

    Returns:
        list[Located]: for people, in the order of the files.
    """
    ordered = sorted(problems, key=lambda one: (one.source, one.position))
    found: list[Located] = []
    for number, of_one in groupby(ordered, key=lambda one: one.source):
        source, some = sources[number], list(of_one)
        if unit_of(source) is Unit.LINE and not source.is_frame:
            places: list[tuple[int, str | None]] = [*lines_at(source, [one.position for one in some])]
        else:
            places = [(one.position, None) for one in some]
        found += [_describe(one, source, *place) for one, place in zip(some, places, strict=True)]
    return found


def _describe(problem: Problem, source: Source, number: int, record: str | None) -> Located:
    unit = unit_of(source)
    where = f"{unit} {number}"
    reason = problem.error.message
    message_text = f"{reason} ({where} of {source.name})" if source.named else f"{reason} ({where})"
    if problem.phase is Phase.READING:
        message_text = f"{where}: {reason}"
        if isinstance(problem.error, MalformedError):
            message_text = f"invalid {'strict ' if unit is Unit.LINE else ''}JSON at {where}: {reason}"
        if source.named:
            message_text = f"{message_text} (in {source.name})"
    return Located(source.name if source.named else None, unit, number, reason, record, _again(problem, message_text))


def unit_of(source: Source) -> Unit:
    """What positions in a file count."""
    if source.is_lines:
        return Unit.LINE
    return Unit.RECORD if source.is_json else Unit.ROW


def _again(problem: Problem, message: str) -> GraphError:
    """The same error with another message."""
    error = problem.error
    match error:
        case ConflictError():
            return ConflictError(message, conflicts=error.conflicts, code=error.code)
        case ConstraintError():
            return ConstraintError(message, **error.details)
        case LimitError():
            return LimitError(message, code=error.code, **error.details)
        case BlobSourceError():
            return BlobSourceError(message, **error.details)
        case _:
            return InvalidRequestError(message, code=error.code, **error.details)
