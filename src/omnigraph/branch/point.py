"""How a state of the graph is named: by a branch, a number, a commit, a tag or a time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from omnigraph.errors import InvalidRequestError
from omnigraph.storage.instants import EPOCH
from omnigraph.transaction.said import text_or_nothing, whole_number_or_nothing

Instant = datetime | str


_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Point:
    """Names one state of the graph. With nothing said, the head of `main`.

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
        text_or_nothing(value, what)
    whole_number_or_nothing(point.number, "the number of a commit")
    if point.commit is not None and (point.branch, point.number, point.tag, point.at) != (None, None, None, None):
        raise InvalidRequestError("a commit is found by its id alone; name no branch and no number beside it")
    if point.tag is not None and (point.branch, point.number, point.at) != (None, None, None):
        raise InvalidRequestError("a tag names one commit; name no branch, number or time beside it")
    if point.number is not None and point.at is not None:
        raise InvalidRequestError("name a number or a time, not both")
    if point.at is not None:
        instant_us(point.at)
