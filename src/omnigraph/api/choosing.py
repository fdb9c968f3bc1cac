"""How callers say what a merge is to decide."""

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import get_args

from omnigraph.branch.merge.choices import PROPERTIES, UNDECIDED, By, Choices, Decision, Side, read_resolutions
from omnigraph.errors import InvalidRequestError
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema import DST, SRC
from omnigraph.transaction.said import text_or_nothing

Resolutions = Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]] | str | PathLike[str]


def choices_of(by: str, prefer: str | None, resolutions: Resolutions | None, base: str | None = None) -> Choices:
    """What a caller said about how to decide.

    Raises:
        InvalidRequestError: a word that means nothing here, or resolutions that cannot be read.
    """
    known: tuple[By, ...] = get_args(By)
    chosen = next((each for each in known if each == by), None)
    if chosen is None:
        raise InvalidRequestError(f"cannot merge by '{by}'; one of {', '.join(known)}")
    if prefer is not None and prefer not in tuple(Side):
        raise InvalidRequestError(f"cannot prefer '{prefer}'; one of {', '.join(Side)}")
    decided: dict[str, tuple[Decision, ...]] = {}
    if resolutions is not None:
        decided = read_resolutions(resolutions if isinstance(resolutions, Mapping) else _read(resolutions))
    named = text_or_nothing(base, "the base of a merge")
    return Choices(chosen, None if prefer is None else Side(prefer), decided, named)


def decisions_to_make(conflicts: Iterable[MergeConflict], by: str) -> dict[str, list[dict[str, object]]]:
    """A document of resolutions in which every decision is still to be made, with what each side has beside it.

    Args:
        conflicts (Iterable[MergeConflict]): of a merge; those that name no entity are passed over.
        by (str): what the merge decides: with `property`, each disputed property is decided by itself.

    Returns:
        dict[str, list[dict[str, object]]]: by type key; to be edited, and given as `resolutions`.
    """
    found: dict[str, list[dict[str, object]]] = {}
    for conflict in conflicts:
        if conflict.entity_id is None:
            continue
        decision: object = UNDECIDED
        if by == "property" and conflict.properties:
            decision = {PROPERTIES: dict.fromkeys(conflict.properties, UNDECIDED)}
        sides = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
        rows = {side: None if row is None else dict(row) for side, row in sides.items()}
        item = _name(conflict) | {"decision": decision, "conflict": conflict.message} | rows
        found.setdefault(conflict.type_key, []).append(item)
    return found


def _name(conflict: MergeConflict) -> dict[str, object]:
    """The entity, by its key where that is what an edge joins: its id would be JSON within JSON."""
    rows = [row for row in (conflict.source, conflict.target, conflict.base) if row is not None]
    ends = [rows[0].get(SRC), rows[0].get(DST)] if rows else []
    if conflict.entity_id == json.dumps(ends, ensure_ascii=False, separators=(",", ":")):
        return {"key": {"from": ends[0], "to": ends[1]}}
    return {"id": conflict.entity_id}


def _read(file: str | PathLike[str]) -> object:
    try:
        return json.loads(Path(file).read_bytes())
    except TypeError:
        raise InvalidRequestError("resolutions are an object of types, or the path of a file that holds one") from None
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else f"no JSON: {fault}"
        raise InvalidRequestError(f"the resolutions in {file} cannot be read: {reason}") from fault
