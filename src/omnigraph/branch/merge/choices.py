"""What the caller of a merge says: whose rows to take, and what to do about single entities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from omnigraph.errors import InvalidRequestError


class Side(StrEnum):
    """The branch brought in, or the branch changed."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> "Side":
        """The other one."""
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


Row = Mapping[str, object]

PROPERTIES = "$properties"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Cells:
    """A decision for single properties of an entity; the others are put together as if nothing was decided.

    Attributes:
        sides: by property, whose value to take.
        values: by property, a value to have instead of either.
    """

    sides: Mapping[str, Side] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)


# A side's state, a row to have instead of either, single properties, or None: the entity is to be deleted.
Resolution = Side | Row | Cells | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about one entity.

    Attributes:
        entity: its id; or its key, as values by property (`from` and `to` are the ends of an edge) or in their order.
        resolution: what to do.
    """

    entity: str | Mapping[str, object] | Sequence[object]
    resolution: Resolution


By = Literal["row", "property"]


@dataclass(frozen=True, slots=True)
class Choices:
    """How a merge decides.

    Attributes:
        by: `row`: a row that both sides changed is a conflict; `property`: only where both changed one property.
        prefer: the side that wins conflicts over rows; None where they are reported.
        resolutions: by type, what to do about entities, in conflict or not. Types are type keys, or names.
        base: the commit to compare both sides with; None for the last that they have in common.
    """

    by: By = "row"
    prefer: Side | None = None
    resolutions: Mapping[str, Sequence[Decision]] = field(default_factory=dict)
    base: str | None = None


def read_resolutions(given: object) -> dict[str, tuple[Decision, ...]]:
    """Read resolutions from a plain document.

    Args:
        given: as JSON has it: by type, an object of decisions by id, or a list of objects with `id` or `key` and
            `decision`; what else these have is passed over. A decision is `"source"`, `"target"`, a row, null to
            delete, `{"$properties": {name: "source", "target" or {"value": …}}}`, or `"undecided"`.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise InvalidRequestError("resolutions are an object of types, each an object of ids")
    return {str(name): tuple(_decisions(name, decisions)) for name, decisions in given.items()}


def resolutions_document(resolutions: Mapping[str, Sequence[Decision]]) -> dict[str, list[dict[str, object]]]:
    """The document that `read_resolutions` reads."""
    return {
        name: [
            {
                "id" if isinstance(decision.entity, str) else "key": decision.entity,
                "decision": _document(decision.resolution),
            }
            for decision in decisions
        ]
        for name, decisions in resolutions.items()
    }


def _decisions(name: object, given: object) -> Iterator[Decision]:
    if isinstance(given, Mapping):
        named: Iterable[tuple[object, object]] = ((str(entity), given_value) for entity, given_value in given.items())
    elif isinstance(given, Sequence) and all(isinstance(item, Mapping) for item in given):
        named = (_named(name, item) for item in given)
    else:
        raise InvalidRequestError(
            f"resolutions for '{name}' must be an object of ids, or a list of objects with an id and a decision"
        )
    for entity, given_value in named:
        if given_value == UNDECIDED or not isinstance(entity, str | Mapping | Sequence):
            continue
        yield Decision(entity, _resolution(name, entity, given_value))


def _named(name: object, given: Mapping[str, object]) -> tuple[object, object]:
    """The entity and the decision of an item of a list."""
    entity = given.get("id", given.get("key"))
    is_named = isinstance(given.get("id"), str) or isinstance(given.get("key"), Mapping | list | tuple)
    if not is_named or "decision" not in given:
        raise InvalidRequestError(f"a resolution for '{name}' must have an 'id' or a 'key', and a 'decision'")
    return entity, given["decision"]


def _resolution(name: object, entity: object, given_value: object) -> Resolution:
    if given_value is None:
        return None
    if isinstance(given_value, Mapping):
        return _cells(name, entity, given_value[PROPERTIES]) if list(given_value) == [PROPERTIES] else _row(given_value)
    if isinstance(given_value, str) and given_value in tuple(Side):
        return Side(given_value)
    raise InvalidRequestError(
        f'the resolution for {name} \'{entity}\' must be "source", "target", a row or null, '
        f'or {{"{PROPERTIES}": …}} for some of its properties'
    )


def _row(given: Mapping[object, object]) -> Row:
    return {str(name): value for name, value in given.items()}


def _cells(name: object, entity: object, given: object) -> Cells:
    sides: dict[str, Side] = {}
    values: dict[str, object] = {}
    if not isinstance(given, Mapping):
        raise InvalidRequestError(f"'{PROPERTIES}' of {name} '{entity}' must be an object of properties")
    for prop, given_value in given.items():
        if isinstance(given_value, str) and given_value in tuple(Side):
            sides[str(prop)] = Side(given_value)
        elif isinstance(given_value, Mapping) and list(given_value) == ["value"]:
            values[str(prop)] = given_value["value"]
        elif given_value != UNDECIDED:
            raise InvalidRequestError(
                f'the resolution for {prop} of {name} \'{entity}\' must be "source", "target" or {{"value": …}}'
            )
    return Cells(sides, values)


def _document(resolution: Resolution) -> object:
    if isinstance(resolution, Cells):
        values = {name: {"value": value} for name, value in resolution.values.items()}
        return {PROPERTIES: {**{name: side.value for name, side in resolution.sides.items()}, **values}}
    return resolution.value if isinstance(resolution, Side) else resolution
