"""Answers that stay within their bounds, in rows and in bytes, and say so where they had to be cut."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError, InvalidRequestError, LimitError


@dataclass(frozen=True, slots=True)
class Fitted:
    """The first of some documents.

    Attributes:
        shown: those that fit.
        is_cut: there are more.
    """

    shown: list[dict[str, Any]]
    is_cut: bool


def fitted(documents: Iterable[Mapping[str, Any]], most: int, *, bytes_max: int = limits.AGENT_BYTES_MAX) -> Fitted:
    """As many documents as fit an answer; no more are asked for than that, and one.

    Args:
        documents (Iterable[Mapping[str, Any]]): rows, changes or whatever an answer lists.
        most (int): how many were asked for.
        bytes_max (int): of their JSON, all together.

    Returns:
        Fitted: the first ones.

    Raises:
        LimitError: not even the first fits.
    """
    shown: list[dict[str, Any]] = []
    room = bytes_max
    for each in documents:
        size = len(compact(each).encode())
        if len(shown) >= most or size > room:
            if not shown:
                raise LimitError(
                    f"the first row alone takes {size:,} bytes, and an answer has room for {bytes_max:,}: "
                    "ask for fewer columns"
                )
            return Fitted(shown, is_cut=True)
        shown.append(dict(each))
        room -= size
    return Fitted(shown, is_cut=False)


def asked_for(limit: int | None) -> int:
    """How many rows an answer may have.

    Raises:
        InvalidRequestError: not so many.
    """
    if limit is None:
        return limits.AGENT_ROWS
    if not 1 <= limit <= limits.AGENT_ROWS_MAX:
        raise InvalidRequestError(f"the limit must be 1 to {limits.AGENT_ROWS_MAX}, and it is {limit}")
    return limit


def error_document(error: GraphError) -> dict[str, Any]:
    """An error as a document: what kind it is, and what to read about it."""
    document: dict[str, Any] = {"code": error.code, "error": str(error)}
    conflicts = [str(getattr(each, "message", each)) for each in getattr(error, "conflicts", ())]
    if conflicts:
        document["conflicts"] = conflicts[: limits.AGENT_ROWS]
    return document


def compact(document: object) -> str:
    """A document as JSON without spaces: whoever pays by the letter reads it."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
