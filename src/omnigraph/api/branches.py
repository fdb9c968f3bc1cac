"""The branches of a graph."""

from collections.abc import Iterator

from omnigraph.api.pages import Page, page_of_names
from omnigraph.branch import branches
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.parts import Parts


class Branches:
    """Named lines of commits. Making one costs one small write, whatever the size of the graph."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @checked
    def create(
        self,
        name: str,
        *,
        source: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> str:
        """Make a branch from the head of another, or from any earlier state of the graph.

        Args:
            name (str): of the new branch; any text without control characters, slashes and all.
            source (str | None): the branch it starts from; `main` by default.
            commit (str | None): the commit it starts from instead.
            number (int | None): a place in the log of the source.
            tag (str | None): the tag it starts from instead.
            at (datetime | str | None): the source as it was at this time; without a zone it is UTC.
            actor (str | None): who.

        Returns:
            str: the commit it starts at.

        Raises:
            AlreadyExistsError: there is such a branch.
            NotFoundError: there is no such source, commit or tag.
            InvalidRequestError: the name cannot be one, or the start is named in two ways.
        """
        point = Point(branch=source, commit=commit, number=number, tag=tag, at=at)
        return branches.create(self._parts, name, point=point, actor=actor).head_commit

    @checked
    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        """Delete a branch; those made from it live on.

        Args:
            name (str): which.
            actor (str | None): who.
            if_commit (str | None): only if this is its head commit.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: it is `main`.
            PreconditionError: the head is another commit.
        """
        branches.delete(self._parts, name, actor=actor, if_commit=if_commit)

    @checked
    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """The names of the branches, in order. One listing, whatever their number: no log is read.

        Args:
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before.

        Returns:
            Page[str]: a list, with a token for the next page where there is one.

        Raises:
            InvalidRequestError: the limit is below one, or the token is none.
        """
        return page_of_names(branches.names(self._parts), limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        """Whether there is such a branch; asks only its own log."""
        if not isinstance(name, str):
            return False
        try:
            return branches.exists(self._parts, name)
        except InvalidRequestError:
            return False
