"""The point in time that a read request names, in its body or its query parameters: one way for all routes."""

from dataclasses import dataclass
from typing import Annotated, Protocol, TypedDict

from fastapi import Depends, Query

from omnigraph.branch.point import Point, check_point
from omnigraph.errors import InvalidRequestError

BRANCH_TEXT = "Read the head of this branch; `main` by default."
COMMIT_TEXT = "Read this commit instead."
NUMBER_TEXT = "Read the branch after its commit with this number. Beyond the contract."
TAG_TEXT = "Read the commit of this tag instead. Beyond the contract."
TIME_TEXT = "Read the branch as of this time. Beyond the contract."


class PointArguments(TypedDict):
    """A point in time as keyword arguments of `Graph.snapshot`."""

    branch: str | None
    commit: str | None
    number: int | None
    tag: str | None
    at: str | None


class HasPoint(Protocol):
    """A request that names a point in time; `snapshot` is a commit id."""

    @property
    def branch(self) -> str | None:
        """Branch name."""
        ...

    @property
    def snapshot(self) -> str | None:
        """Commit id."""
        ...

    @property
    def number(self) -> int | None:
        """Number of a commit on the branch."""
        ...

    @property
    def tag(self) -> str | None:
        """Tag name."""
        ...

    @property
    def at(self) -> str | None:
        """Time, as of which the branch is read."""
        ...


@dataclass(frozen=True, slots=True)
class PointParams:
    """A point in time in the query parameters of a request without a body."""

    branch: Annotated[str | None, Query(description=BRANCH_TEXT)] = None
    snapshot: Annotated[str | None, Query(description=f"{COMMIT_TEXT} Beyond the contract.")] = None
    number: Annotated[int | None, Query(description=NUMBER_TEXT)] = None
    tag: Annotated[str | None, Query(description=TAG_TEXT)] = None
    at: Annotated[str | None, Query(description=TIME_TEXT)] = None


PointQuery = Annotated[PointParams, Depends()]
"""A route parameter: the point in time to read."""


def point_arguments(request: HasPoint) -> PointArguments:
    """Return the point in time that a request names.

    Raises:
        InvalidRequestError: it names more than one, or an impossible one.
    """
    if request.branch is not None and request.snapshot is not None:
        raise InvalidRequestError("request may specify branch or snapshot, not both")
    point: PointArguments = {
        "branch": request.branch,
        "commit": request.snapshot,
        "number": request.number,
        "tag": request.tag,
        "at": request.at,
    }
    # Validate before a commit or tag is looked up to learn its branch.
    check_point(Point(**point))
    return point
