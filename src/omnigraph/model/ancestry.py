"""Ancestry of commits whose log entries were cut away: enough of it to find merge bases."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log."""

    branch: str
    number: int


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An ancestor of a commit, some steps below it.

    Attributes:
        commit: its id.
        place: where its own entry lies, or lay.
        steps: how many commits lie on the way to it, itself included.
    """

    commit: str
    place: Place
    steps: int = 1


@dataclass(frozen=True, slots=True)
class CutCommit:
    """A commit whose entry was cut away.

    Attributes:
        commit: its id.
        number: of its entry.
        parents: the nearest ancestors that are known by name, the one on the line of first parents first; commits
            between have one parent and one child. None where nothing below is needed.
    """

    commit: str
    number: int
    parents: tuple[Ancestor, ...] | None


@dataclass(frozen=True, slots=True)
class CutLog:
    """What is known of the entries that were cut from a log.

    Attributes:
        branch: whose log.
        first: entries below this number are described here.
        commits: those that are known by name, by number.
    """

    branch: str
    first: int
    commits: tuple[CutCommit, ...]
