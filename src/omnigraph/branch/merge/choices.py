"""What the caller of a merge says: whose rows to take, and what to do about single entities."""

from collections.abc import Mapping
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


# A side's state, a row to have instead of either, or None: the entity is to be deleted.
Resolution = Side | Row | None


By = Literal["row", "property"]


@dataclass(frozen=True, slots=True)
class Choices:
    """How a merge decides.

    Attributes:
        by: `row`: a row that both sides changed is a conflict; `property`: only where both changed one property.
        prefer: the side that wins conflicts over rows; None where they are reported.
        resolutions: by type and id, what to do whether or not it conflicts. Types are type keys, or names.
    """

    by: By = "row"
    prefer: Side | None = None
    resolutions: Mapping[str, Mapping[str, Resolution]] = field(default_factory=dict)


def read_resolutions(given: object) -> dict[str, dict[str, Resolution]]:
    """Resolutions from a plain document: by type, by id, `"source"`, `"target"`, a row, or null to delete.

    Args:
        given: as JSON has it.

    Returns:
        The same, as values.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise InvalidRequestError("resolutions are an object of types, each an object of ids")
    found: dict[str, dict[str, Resolution]] = {}
    for type_name, by_id in given.items():
        if not isinstance(by_id, Mapping):
            raise InvalidRequestError(f"resolutions for '{type_name}' must be an object of ids")
        found[str(type_name)] = {str(each): _resolution(type_name, each, said) for each, said in by_id.items()}
    return found


def _resolution(type_name: object, entity_id: object, said: object) -> Resolution:
    if said is None:
        return None
    if isinstance(said, Mapping):
        return {str(name): value for name, value in said.items()}
    if isinstance(said, str) and said in tuple(Side):
        return Side(said)
    raise InvalidRequestError(
        f'the resolution for {type_name} \'{entity_id}\' must be "source", "target", a row or null'
    )
