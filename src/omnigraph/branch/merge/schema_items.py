"""Decisions about schema items: what the caller chose, which side wins, and what stays a conflict."""

from collections.abc import Iterable, Mapping

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_views import PropertyView, TypeView, three_way
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import Annotation

SCHEMA = "schema"
"""What resolutions and conflicts call the schema, in the place of a type."""
WHOLE = "*"
"""The schema item that stands for all of them."""


class SchemaItems:
    """The items of one merge of schemas, as far as they are decided."""

    def __init__(self, chosen: Mapping[str, Side], prefer: Side | None) -> None:
        self.prefer = prefer
        self.conflicts: dict[str, MergeConflict] = {}
        self.resolved: dict[str, Side] = {}
        self.disputed: set[str] = set()
        self._chosen = chosen
        self._used: set[str] = set()
        self._decided: dict[str, Side] = {}

    @property
    def unknown(self) -> list[str]:
        """The choices that name no item that changed."""
        return sorted(self._chosen.keys() - self._used)

    def choice(self, key: str, names: Iterable[str], *, is_changed: bool) -> Side | None:
        """Return what the caller chose for an item, under any of its names."""
        for name in names:
            side = self._chosen.get(name)
            if side is not None and is_changed:
                self._used.add(name)
                self.resolved[name] = self._decided[key] = side
                return side
        return None

    def decide(self, key: str, message: str, *images: Mapping[str, object] | None) -> Side:
        """Return the side that an undecided item is taken from; note a conflict if no choice decides."""
        owner = key.partition(".")[0]
        self.disputed |= {key, owner}
        side = self._decided.get(key) or self._chosen.get(key) or self._decided.get(owner) or self.prefer
        if side is None:
            self.conflict(key, message, *images)
            return Side.TARGET
        self._used.add(key)
        if key not in self._decided and owner not in self._decided:
            self.resolved[key] = side
        return side

    def conflict(self, key: str, message: str, *images: Mapping[str, object] | None) -> None:
        """Note a conflict; an item has at most one."""
        base, source, target = images
        self.conflicts.setdefault(
            key, MergeConflict(MergeConflictKind.DIVERGENT_SCHEMA, SCHEMA, key, message, base, source, target)
        )

    def annotations(
        self,
        key: str,
        base: frozenset[Annotation] | None,
        source: frozenset[Annotation] | None,
        target: frozenset[Annotation] | None,
    ) -> frozenset[Annotation]:
        """Merge annotations by name."""
        sides = [_by_name(annotations or frozenset()) for annotations in (base, source, target)]
        found: set[Annotation] = set()
        for name in sorted({name for side in sides for name in side}):
            was, ours, theirs = (side.get(name, frozenset()) for side in sides)
            is_decided, value = three_way(was, ours, theirs)
            if not is_decided:
                message = f"@{name} of {key} has another value on each branch"
                images = (
                    {f"@{name}": ", ".join(sorted(annotation.value or "" for annotation in some))}
                    for some in (was, ours, theirs)
                )
                value = ours if self.decide(key, message, *images) is Side.SOURCE else theirs
            found |= value
        return frozenset(found)


def _by_name(annotations: frozenset[Annotation]) -> dict[str, frozenset[Annotation]]:
    names = {annotation.name for annotation in annotations}
    return {name: frozenset(annotation for annotation in annotations if annotation.name == name) for name in names}


def describe_type(view: TypeView | None) -> dict[str, object] | None:
    """Describe a type for a conflict."""
    if view is None:
        return None
    return {"name": view.name, "properties": {part.name: str(part.type) for part in view.properties.values()}}


def describe_property(part: PropertyView | None) -> dict[str, object] | None:
    """Describe a property for a conflict."""
    return None if part is None else {"name": part.name, "type": str(part.type)}
