"""How a state of the graph is named: by a branch, a number, a commit, a tag or a time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from omnigraph.errors import InvalidRequestError
from omnigraph.storage.instants import EPOCH
from omnigraph.transaction.validation import require_optional_text, require_optional_whole_number

Instant = datetime | str


_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Point:
    """A state of the graph; the head of `main` by default.

    Attributes:
        branch: its head; or with `number` or `at`, an earlier state of it.
        commit: the commit of this id, wherever it is.
        number: the place in the branch's log.
        tag: what the tag names.
        at: the branch as it was at this time; a text in ISO 8601, or a datetime. Without a zone it is UTC.
    """

    branch: str | None = None
    commit: str | None = None
    number: int | None = None
    tag: str | None = None
    at: Instant | None = None

    @property
    def is_head(self) -> bool:
        """Whether it moves: the head of a branch."""
        return self.commit is None and self.number is None and self.tag is None and self.at is None


HEAD_OF_MAIN = Point()


class PointKeywords(TypedDict, total=False):
    """Keywords of every read: one state of the graph, as a value or by its fields. By default the head of `main`.

    Attributes:
        point: the state as one value, instead of the other keywords.
        branch: the head of this branch; or with `number` or `at`, an earlier state of it.
        commit: the commit with this id, on any branch.
        number: the branch as its commit of this number left it.
        tag: the commit that this tag names.
        at: the branch as it was at this time, a datetime or a text in ISO 8601; without a zone it is UTC.
    """

    point: Point | None
    branch: str | None
    commit: str | None
    number: int | None
    tag: str | None
    at: Instant | None


def point_of(keywords: PointKeywords) -> Point:
    """Bring together the state that keywords name.

    Raises:
        InvalidRequestError: a point and other keywords are given, or no point.
        TypeError: there is no such keyword.
    """
    fields: dict[str, Any] = dict(keywords)
    point = fields.pop("point", None)
    if point is None:
        return Point(**fields) if fields else HEAD_OF_MAIN
    if fields:
        raise InvalidRequestError("name a point, or its fields one by one, not both")
    if not isinstance(point, Point):
        raise InvalidRequestError(f"a point must be a Point, got {type(point).__name__}")
    return point


def instant_us(at: Instant) -> int:
    """A time in microseconds since 1970.

    Raises:
        InvalidRequestError: the text names none.
    """
    moment = at
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise InvalidRequestError(
                f"'{at}' is no time; write it like 2026-01-31T18:00:00Z", code="bad_time"
            ) from None
    if not isinstance(moment, datetime):
        raise InvalidRequestError(f"a time is a text or a datetime, got {type(at).__name__}", code="bad_time")
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // _MICROSECOND


def check_point(point: Point) -> None:
    """Refuse what names no state, before anybody looks for it.

    Raises:
        InvalidRequestError: two things are named of which one would do, or one is of the wrong kind.
    """
    for what, value in (("a branch", point.branch), ("a commit", point.commit), ("a tag", point.tag)):
        require_optional_text(value, what)
    require_optional_whole_number(point.number, "the number of a commit")
    if point.commit is not None and (point.branch, point.number, point.tag, point.at) != (None, None, None, None):
        raise InvalidRequestError("a commit is found by its id alone; name no branch and no number beside it")
    if point.tag is not None and (point.branch, point.number, point.at) != (None, None, None):
        raise InvalidRequestError("a tag names one commit; name no branch, number or time beside it")
    if point.number is not None and point.at is not None:
        raise InvalidRequestError("name a number or a time, not both")
    if point.at is not None:
        instant_us(point.at)
