"""Conditions and ranges of requests for bytes."""

import re
from dataclasses import dataclass

from fastapi import Request

from omnigraph.server.errors import Refusal

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)
_TAG = re.compile(r'(W/)?"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Range:
    """Some of the bytes.

    Attributes:
        start: the first.
        end: the one after the last.
    """

    start: int
    end: int


def refuse_mismatch(request: Request, etag: str) -> bool:
    """Judge what the caller says about the tag.

    Args:
        request (Request): with `If-Match` and `If-None-Match`.
        etag (str): what the bytes have, in quotes.

    Returns:
        bool: whether the caller has the bytes already.

    Raises:
        Refusal: they are not the ones the caller wants.
    """
    wanted = _listed(request, "if-match")
    if wanted is not None and not _is_among(etag, wanted, weak=False):
        raise Refusal(412, "the blob is not the one that If-Match names", code="conflict")
    had = _listed(request, "if-none-match")
    return had is not None and _is_among(etag, had, weak=True)


def range_of(request: Request, etag: str, size: int) -> Range | None:
    """The range that is asked for.

    Args:
        request (Request): with `Range` and `If-Range`.
        etag (str): what the bytes have, in quotes.
        size (int): how many there are.

    Returns:
        Range | None: None for all of them: no range, several, or one that cannot be understood.

    Raises:
        Refusal: the range is outside the bytes.
    """
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None or not (found[1] or found[2]):
        return None
    if request.headers.get("if-range", etag).strip() != etag:
        return None
    if not found[1]:
        wanted = int(found[2])
        start, end = max(0, size - wanted), size
        if wanted == 0:
            start = size
    else:
        start, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < start:
            return None
    if start >= size:
        raise Refusal(
            416,
            f"the blob has {size} bytes, and no range of it begins at {start}",
            details={"blob_range": {"start": start, "end": max(start, end), "length": size}},
            headers={"Content-Range": f"bytes */{size}"},
        )
    return Range(start, end)


def _listed(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return ", ".join(values) if values else None


def _is_among(etag: str, listed: str, *, weak: bool) -> bool:
    if listed.strip() == "*":
        return True
    return any(f'"{tag}"' == etag and (weak or not is_weak) for is_weak, tag in _TAG.findall(listed))
