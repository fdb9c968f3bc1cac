"""The tags of a graph."""

from collections.abc import Iterator

from omnigraph.api.pages import Page, page_of_names
from omnigraph.branch import tags
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.branch.points import entry_at
from omnigraph.branch.told import Tag
from omnigraph.transaction.parts import Parts


class Tags:
    """Names for commits. A tag does not move, and what it names is kept."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @checked
    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> Tag:
        """Name a commit.

        Args:
            name (str): the tag.
            branch (str | None): its head commit, or with `number` or `at` an earlier one; `main` by default.
            commit (str | None): a commit by its id instead.
            number (int | None): a place in the branch's log.
            at (datetime | str | None): the branch as it was at this time.
            actor (str | None): who.

        Returns:
            Tag: what was named.

        Raises:
            AlreadyExistsError: the name is taken.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: the name cannot be one.
        """
        found = entry_at(self._parts, Point(branch=branch, commit=commit, number=number, at=at))
        return tags.create(self._parts, name, found, actor=actor)

    @checked
    def read(self, name: str) -> Tag:
        """What a tag names.

        Args:
            name (str): the tag.

        Returns:
            Tag: with the commit's id.

        Raises:
            NotFoundError: there is no such tag.
        """
        return tags.read(self._parts, name)

    @checked
    def delete(self, name: str) -> None:
        """Take a name back; the commit stays.

        Args:
            name (str): the tag.

        Raises:
            NotFoundError: there is no such tag.
        """
        tags.delete(self._parts, name)

    @checked
    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """The names of the tags, in order. One request for every thousand.

        Args:
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before.

        Returns:
            Page[str]: a list, with a token for the next page where there is one.

        Raises:
            InvalidRequestError: the limit is below one, or the token is none.
        """
        return page_of_names(tags.names(self._parts), limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())
