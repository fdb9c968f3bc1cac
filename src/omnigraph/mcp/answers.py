"""Limit the results of tools in rows and in bytes, and mark the ones that were truncated."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError, InvalidRequestError, LimitError


@dataclass(frozen=True, slots=True)
class Truncated:
    """The first documents of a result, and whether there are more."""

    shown: list[dict[str, Any]]
    is_cut: bool


def truncate(
    documents: Iterable[Mapping[str, Any]], count_max: int, *, bytes_max: int = limits.AGENT_BYTES_MAX
) -> Truncated:
    """Take the first documents that fit the limits, reading at most one more.

    Args:
        documents: rows, changes or other items of a result.
        count_max: the largest number of documents.
        bytes_max: the largest size of their JSON, in total.

    Raises:
        LimitError: the first document alone is too large.
    """
    shown: list[dict[str, Any]] = []
    left = bytes_max
    for document in documents:
        size = len(compact_json(document).encode())
        if len(shown) >= count_max or size > left:
            if not shown:
                raise LimitError(
                    f"the first row alone takes {size:,} bytes, and an answer is limited to {bytes_max:,}: "
                    "request fewer columns"
                )
            return Truncated(shown, is_cut=True)
        shown.append(dict(document))
        left -= size
    return Truncated(shown, is_cut=False)


def row_limit(limit: int | None) -> int:
    """Return the requested number of rows, or the default.

    Raises:
        InvalidRequestError: the limit is out of range.
    """
    if limit is None:
        return limits.AGENT_ROWS
    if not 1 <= limit <= limits.AGENT_ROWS_MAX:
        raise InvalidRequestError(f"the limit must be 1 to {limits.AGENT_ROWS_MAX}, not {limit}")
    return limit


def error_document(error: GraphError) -> dict[str, Any]:
    """Return an error as a JSON document: its code, its message, and its conflicts."""
    document: dict[str, Any] = {"code": error.code, "error": str(error)}
    conflicts = [str(getattr(conflict, "message", conflict)) for conflict in getattr(error, "conflicts", ())]
    if conflicts:
        document["conflicts"] = conflicts[: limits.AGENT_ROWS]
    return document


def compact_json(document: object) -> str:
    """Serialize a document as JSON without spaces, for models that are charged by token."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
