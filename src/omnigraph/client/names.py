"""The branches and the tags of a graph on a server."""

from collections.abc import Iterator

from omnigraph.api.pages import Page, page_of_names
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant
from omnigraph.branch.told import Tag
from omnigraph.client import values
from omnigraph.client.base import refuse_actor
from omnigraph.client.values import instant
from omnigraph.client.wire import Wire, segment
from omnigraph.errors import InvalidRequestError, NotFoundError


class RemoteBranches:
    """Named lines of commits; see `omnigraph.Branches`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

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
            name (str): of the new branch.
            source (str | None): the branch it starts from; `main` by default.
            commit (str | None): the commit it starts from instead.
            number (int | None): a place in the log of the source.
            tag (str | None): the tag it starts from instead.
            at (datetime | str | None): the source as it was at this time; without a zone it is UTC.
            actor (str | None): not to be named: the token decides.

        Returns:
            str: the commit it starts at.

        Raises:
            OutcomeUnknownError: the answer was lost; list the branches to see.
        """
        refuse_actor(actor, self._wire)
        body = {"name": name, "from": source, "commit": commit, "number": number, "tag": tag, "at": instant(at)}
        return str(self._wire.act("POST", "branches", body)["graph_commit_id"])

    @checked
    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        """Delete a branch; those made from it live on.

        Args:
            name (str): which.
            actor (str | None): not to be named: the token decides.
            if_commit (str | None): only if this is its head commit.

        Raises:
            OutcomeUnknownError: the answer was lost; list the branches to see.
        """
        refuse_actor(actor, self._wire)
        _ = self._wire.act("DELETE", f"branches/{_segment(name, 'branch')}", params={"if_commit": if_commit})["name"]

    @checked
    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """The names of the branches, in order.

        Args:
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before.

        Returns:
            Page[str]: a list, with a token for the next page where there is one.
        """
        return page_of_names(self._wire.get("branches")["branches"], limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        """Whether there is such a branch."""
        if not isinstance(name, str):
            return False
        try:
            _ = self._wire.get("snapshot", branch=name)["datasets"]
        except NotFoundError:
            return False
        except InvalidRequestError as wrong:
            if wrong.code == "no_server":
                raise
            return False
        return True


class RemoteTags:
    """Names for commits; see `omnigraph.Graph.tags`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

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
            actor (str | None): not to be named: the token decides.

        Returns:
            Tag: what was named.

        Raises:
            OutcomeUnknownError: the answer was lost; read the tag to see.
        """
        refuse_actor(actor, self._wire)
        body = {"name": name, "branch": branch, "commit": commit, "number": number, "at": instant(at)}
        return values.tag(self._wire.act("POST", "tags", body))

    @checked
    def read(self, name: str) -> Tag:
        """What a tag names.

        Args:
            name (str): the tag.

        Returns:
            Tag: with the commit's id.
        """
        return values.tag(self._wire.get(f"tags/{_segment(name, 'tag')}"))

    @checked
    def delete(self, name: str) -> None:
        """Take a name back; the commit stays.

        Args:
            name (str): the tag.

        Raises:
            OutcomeUnknownError: the answer was lost; read the tag to see.
        """
        self._wire.act("DELETE", f"tags/{_segment(name, 'tag')}")

    @checked
    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """The names of the tags, in order.

        Args:
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before.

        Returns:
            Page[str]: a list, with a token for the next page where there is one.
        """
        names = [each["name"] for each in self._wire.get("tags")["tags"]]
        return page_of_names(names, limit=limit, page_token=page_token)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())


def _segment(name: str, what: str) -> str:
    """A name as the last part of a path; one that is nothing at all would ask for something else."""
    if not name.strip():
        raise InvalidRequestError(f"a {what} has a name")
    return segment(name)
