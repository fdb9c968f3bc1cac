"""The tags of an open graph."""

from collections.abc import Sequence

from omnigraph.api.naming import NamedCommits
from omnigraph.branch import tags
from omnigraph.branch.point import Point
from omnigraph.branch.points import act_at
from omnigraph.branch.told import Tag
from omnigraph.transaction.parts import Parts


class Tags(NamedCommits):
    """Names for commits. A tag does not move, and what it names is kept."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def _create(self, name: str, what: Point, actor: str | None) -> Tag:
        return act_at(self._parts, what, lambda entry: tags.create(self._parts, name, entry, actor=actor))

    def _read(self, name: str) -> Tag:
        return tags.read(self._parts, name)

    def _delete(self, name: str) -> None:
        tags.delete(self._parts, name)

    def _names(self) -> Sequence[str]:
        return tags.names(self._parts)
