"""The branches of a graph."""

from collections.abc import Iterator

from omnigraph.api.options import MAIN_BRANCH
from omnigraph.branch import branches
from omnigraph.transaction.parts import Parts


class Branches:
    """Named lines of commits. Making one costs one small write, whatever the size of the graph."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def create(self, name: str, *, source: str = MAIN_BRANCH, actor: str | None = None) -> str:
        """Make a branch from the head of another.

        Args:
            name (str): of the new branch.
            source (str): the branch it starts from.
            actor (str | None): who.

        Returns:
            str: the commit it starts at.

        Raises:
            AlreadyExistsError: there is such a branch.
            NotFoundError: there is no source branch.
            InvalidRequestError: the name cannot be one.
        """
        return branches.create(self._parts, name, source=source, actor=actor).head_commit

    def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a branch; those made from it live on.

        Args:
            name (str): which.
            actor (str | None): who.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: it is `main`.
        """
        branches.delete(self._parts, name, actor=actor)

    def list(self) -> list[str]:
        """The names of the branches, in order."""
        return branches.names(self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        return name in self.list()
