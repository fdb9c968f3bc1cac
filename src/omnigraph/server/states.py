"""The state of a graph that a read names, in a body or in its parameters: one way for all routes."""

from dataclasses import dataclass
from typing import Annotated, Protocol, TypedDict

from fastapi import Depends, Query

from omnigraph.branch.point import Point, check_point
from omnigraph.errors import InvalidRequestError

HEAD = "At whose head; `main` by default."
COMMIT = "At this commit instead."
NUMBER = "The branch as its commit of this number left it. Beyond the contract."
TAG = "At the commit of this tag instead. Beyond the contract."
TIME = "The branch as it was at this time. Beyond the contract."


class Where(TypedDict):
    """A state in the words of `Graph.snapshot`."""

    branch: str | None
    commit: str | None
    number: int | None
    tag: str | None
    at: str | None


class NamesState(Protocol):
    """Whatever of a request names a state."""

    @property
    def branch(self) -> str | None:
        """The branch; at its head, or earlier."""
        ...

    @property
    def snapshot(self) -> str | None:
        """A commit by its id."""
        ...

    @property
    def number(self) -> int | None:
        """A place in the branch's log."""
        ...

    @property
    def tag(self) -> str | None:
        """A tag."""
        ...

    @property
    def at(self) -> str | None:
        """A time of the branch."""
        ...


@dataclass(frozen=True, slots=True)
class StateParameters:
    """A state, named by the parameters of a request without a body."""

    branch: Annotated[str | None, Query(description=HEAD)] = None
    snapshot: Annotated[str | None, Query(description=f"{COMMIT} Beyond the contract.")] = None
    number: Annotated[int | None, Query(description=NUMBER)] = None
    tag: Annotated[str | None, Query(description=TAG)] = None
    at: Annotated[str | None, Query(description=TIME)] = None


State = Annotated[StateParameters, Depends()]
"""A parameter of a route: the state it reads at."""


def where(named: NamesState) -> Where:
    """The state that a request names, as reads of a graph take it.

    Raises:
        InvalidRequestError: it names two things of which one would do, or none.
    """
    if named.branch is not None and named.snapshot is not None:
        raise InvalidRequestError("request may specify branch or snapshot, not both")
    found: Where = {
        "branch": named.branch,
        "commit": named.snapshot,
        "number": named.number,
        "tag": named.tag,
        "at": named.at,
    }
    # Before anybody looks for a commit or a tag to learn whose it is.
    check_point(Point(**found))
    return found
