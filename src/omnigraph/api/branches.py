"""The branches of an open graph."""

from collections.abc import Sequence

from omnigraph.api.naming import NamedLines
from omnigraph.branch import branches
from omnigraph.branch.point import Point
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.parts import Parts


class Branches(NamedLines):
    """Named lines of commits. Making one costs one small write, whatever the size of the graph."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def _create(self, name: str, start: Point, actor: str | None) -> str:
        return branches.create(self._parts, name, point=start, actor=actor).head_commit

    def _delete(self, name: str, actor: str | None, if_commit: str | None) -> None:
        branches.delete(self._parts, name, actor=actor, if_commit=if_commit)

    def _names(self) -> Sequence[str]:
        return branches.names(self._parts)

    def _is_there(self, name: str) -> bool:
        try:
            return branches.exists(self._parts, name)
        except InvalidRequestError:
            return False
