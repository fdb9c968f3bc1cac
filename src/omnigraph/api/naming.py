"""Names of a graph, wherever it is: branches, which move, and tags, which do not.

What they are called, take and mean is here; how it is done, in `branches.py` and `tags.py`, and in `client`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from omnigraph.api.pages import Page, page_of_names
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.branch.told import Tag


class NamedLines(ABC):
    """Named lines of commits."""

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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.

        Returns:
            str: the commit it starts at.

        Raises:
            AlreadyExistsError: there is such a branch.
            NotFoundError: there is no such source, commit or tag.
            InvalidRequestError: the name cannot be one, or the start is named in two ways.
            OutcomeUnknownError: of a graph on a server, the answer was lost; look what is there.
        """
        return self._create(name, Point(branch=source, commit=commit, number=number, tag=tag, at=at), actor)

    @checked
    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        """Delete a branch; those made from it live on.

        Args:
            name (str): which.
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
            if_commit (str | None): only if this is its head commit.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: it is `main`.
            PreconditionError: the head is another commit.
            OutcomeUnknownError: of a graph on a server, the answer was lost; look what is there.
        """
        self._delete(name, actor, if_commit)

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
        return page_of_names(self._names(), limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        """Whether there is such a branch; asks only about that one."""
        return isinstance(name, str) and self._is_there(name)

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _create(self, name: str, start: Point, actor: str | None) -> str: ...

    @abstractmethod
    def _delete(self, name: str, actor: str | None, if_commit: str | None) -> None: ...

    @abstractmethod
    def _names(self) -> Sequence[str]: ...

    @abstractmethod
    def _is_there(self, name: str) -> bool: ...


class NamedCommits(ABC):
    """Names for commits. A tag does not move, and what it names is kept."""

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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.

        Returns:
            Tag: what was named.

        Raises:
            AlreadyExistsError: the name is taken.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: the name cannot be one.
            OutcomeUnknownError: of a graph on a server, the answer was lost; look what is there.
        """
        return self._create(name, Point(branch=branch, commit=commit, number=number, at=at), actor)

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
        return self._read(name)

    @checked
    def delete(self, name: str) -> None:
        """Take a name back; the commit stays.

        Args:
            name (str): the tag.

        Raises:
            NotFoundError: there is no such tag.
            OutcomeUnknownError: of a graph on a server, the answer was lost; look what is there.
        """
        self._delete(name)

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
        return page_of_names(self._names(), limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _create(self, name: str, what: Point, actor: str | None) -> Tag: ...

    @abstractmethod
    def _read(self, name: str) -> Tag: ...

    @abstractmethod
    def _delete(self, name: str) -> None: ...

    @abstractmethod
    def _names(self) -> Sequence[str]: ...
