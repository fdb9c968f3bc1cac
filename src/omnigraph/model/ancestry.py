"""Ancestry of commits whose log entries were cut: enough of it to find merge bases."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Position of an entry in a branch's log."""

    branch: str
    number: int


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An ancestor of a commit.

    Attributes:
        commit: id of the ancestor.
        place: log position of its entry, which may have been cut.
        steps: commits on the way to the ancestor, itself included.
    """

    commit: str
    place: Place
    steps: int = 1


@dataclass(frozen=True, slots=True)
class CutCommit:
    """A commit whose log entry was cut.

    Attributes:
        commit: id of the commit.
        number: log number that its entry had.
        parents: nearest known ancestors, first-parent line first; commits between have one parent and one child. None
            where nothing below is needed.
    """

    commit: str
    number: int
    parents: tuple[Ancestor, ...] | None


@dataclass(frozen=True, slots=True)
class CutLog:
    """Ancestry that is known of the entries cut from a log.

    Attributes:
        branch: name of the log's branch.
        first: entries below this number are described here.
        commits: the known ones, ascending by number.
    """

    branch: str
    first: int
    commits: tuple[CutCommit, ...]
