"""How callers say what a merge is to decide."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import get_args

from omnigraph.branch.merge.choices import By, Choices, Decision, Side, read_resolutions
from omnigraph.errors import InvalidRequestError
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


def _read(file: str | PathLike[str]) -> object:
    try:
        return json.loads(Path(file).read_bytes())
    except TypeError:
        raise InvalidRequestError("resolutions are an object of types, or the path of a file that holds one") from None
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else f"no JSON: {fault}"
        raise InvalidRequestError(f"the resolutions in {file} cannot be read: {reason}") from fault
