"""Merge options: how a merge decides conflicts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import get_args

from omnigraph.branch.merge.choices import PROPERTIES, UNDECIDED, By, Choices, Decision, Side, read_resolutions
from omnigraph.errors import InvalidRequestError
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema import DST, SRC
from omnigraph.transaction.validation import require_optional_text

Resolutions = Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]] | str | PathLike[str]


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What to merge, and how; see `Graph.merge`.

    Attributes:
        source: the branch to merge.
        into: the branch that is changed.
        choices: how conflicts are decided.
        preview: only compute the merge.
        delete_branch: delete the source afterwards.
        if_source_commit: merge only if this is still the source's head.
        engine: where the changes of each side are computed.
    """

    source: str
    into: str
    choices: Choices
    preview: bool
    delete_branch: bool
    if_source_commit: str | None
    engine: str


def choices_of(by: str, prefer: str | None, resolutions: Resolutions | None, base: str | None = None) -> Choices:
    """Validate how a merge is to decide.

    Raises:
        InvalidRequestError: an option is unknown, or the resolutions cannot be read.
    """
    known: tuple[By, ...] = get_args(By)
    chosen = next((name for name in known if name == by), None)
    if chosen is None:
        raise InvalidRequestError(f"cannot merge by '{by}'; one of {', '.join(known)}")
    if prefer is not None and prefer not in tuple(Side):
        raise InvalidRequestError(f"cannot prefer '{prefer}'; one of {', '.join(Side)}")
    decided: dict[str, tuple[Decision, ...]] = {}
    if resolutions is not None:
        decided = read_resolutions(resolutions if isinstance(resolutions, Mapping) else _read(resolutions))
    named = require_optional_text(base, "the base of a merge")
    return Choices(chosen, None if prefer is None else Side(prefer), decided, named)


def decisions_to_make(conflicts: Iterable[MergeConflict], by: str) -> dict[str, list[dict[str, object]]]:
    """Make a resolutions document with every decision still open, and the values of each side beside it.

    Args:
        conflicts: conflicts without an entity are left out.
        by: with `property`, each disputed property is decided separately.

    Returns:
        By type key; to be edited and given as `resolutions`.
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
    """Name an entity by id; an edge whose id is made of its ends by its key: the id would be JSON within JSON."""
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
