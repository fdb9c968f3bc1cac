"""Bytes to records and back; picks the module for each on-disk version.

Nobody above this file knows that versions exist. What cannot be read is a `FormatError` that names the file.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

from omnigraph import limits
from omnigraph.errors import FormatError
from omnigraph.model.commit import Pin, Record
from omnigraph.model.footprint import Footprint
from omnigraph.model.intent import Completed, Intent
from omnigraph.storage.records import commit_v0, commit_v1, commit_v2, intent_v1

FORMAT = commit_v2.VERSION
_FOOTPRINT_FORMAT = commit_v1.VERSION

CUT_MARK = b'{"format":2,"cut":true}'
"""Stands in the place after an entry that is held below the floor, so that nobody puts another there."""

_RECORD_READERS: Mapping[int, Callable[[dict[str, Any], commit_v1.WholeMap], Record]] = {
    commit_v0.VERSION: commit_v0.read,
    commit_v1.VERSION: commit_v1.read,
    commit_v2.VERSION: commit_v2.read,
}
_INTENT_READERS: Mapping[int, Callable[[dict[str, Any]], Intent]] = {intent_v1.VERSION: intent_v1.read_intent}
_COMPLETED_READERS: Mapping[int, Callable[[dict[str, Any]], Completed]] = {intent_v1.VERSION: intent_v1.read_completed}

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What `__format.json` says.

    Attributes:
        format: the on-disk format.
        graph: the graph's own id.
        fenced_externally: its writers agree through an external store; one that did not would undo that.
        fence_id: the id of that external store; empty where none decides, or in older stamps.
        durability: what all its writers promise at the least, "power" or "process"; empty in older stamps.
        log_cut_s: how long a log entry must have been there before a sweep cuts it away; None in older stamps.
        ends_announced: whoever ended a branch said so beside its log first, so one without such a mark is there.
    """

    format: int
    graph: str
    fenced_externally: bool = False
    ends_announced: bool = False
    fence_id: str = ""
    durability: str = ""
    log_cut_s: float | None = None


def record_bytes(record: Record, *, since: tuple[int, dict[str, Pin]] | None = None) -> bytes:
    """A log entry as it is put; with `since`, its table map counts from that entry's map."""
    return _record_bytes(record, since, None)


def copy_bytes(record: Record) -> bytes:
    """A copy of an entry, which names the checksum of what was put where that is another."""
    body = _record_bytes(record, None, None)
    return body if checksum_of(body) == record.checksum else _record_bytes(record, None, record.checksum)


def _record_bytes(record: Record, since: tuple[int, dict[str, Pin]] | None, known_as: str | None) -> bytes:
    if since is not None or len(record.tables) <= limits.MAPS_SPELLED_OUT_TYPES_MAX:
        return _summed(_dumped(commit_v2.document(record, since=since, known_as=known_as)))
    rest = _dumped(commit_v2.document(replace(record, tables={}), known_as=known_as))
    return _summed(b'%s,"tables":%s}' % (rest[:-1], _map_bytes(record.tables)))


# A flipped bit would turn the name of a type, a version or a number into another that can be read as well. So an entry,
# and the notes of a write, end with a checksum of all that comes before it, in a member that releases which know
# nothing of it pass over.
_SUM = re.compile(rb',"sum":"([0-9a-f]{16})"\}\Z')
_SUM_BYTES = 8
_SUMMED_SINCE = len(b',"sum":""}') + 2 * _SUM_BYTES


def _summed(body: bytes) -> bytes:
    return b'%s,"sum":"%s"}' % (body[:-1], _sum(body[:-1]))


def _sum(content: bytes) -> bytes:
    return blake2b(content, digest_size=_SUM_BYTES).hexdigest().encode()


def _checked_sum(body: bytes, *, path: str, what: str = "log entry") -> str:
    """The checksum of a document: the one it ends with, which must be right, or that of all of it where it has none."""
    found = _SUM.match(body, max(len(body) - _SUMMED_SINCE, 0))
    content = body if found is None else body[: found.start()]
    checksum = _sum(content)
    if found is not None and found[1] != checksum:
        raise FormatError(f"the {what} {path} is not what was written: its checksum differs", path=path)
    return checksum.decode()


def checksum_of(body: bytes) -> str:
    """The checksum of an entry as `record_bytes` made it."""
    return body[-_SUMMED_SINCE:].decode()[len(',"sum":"') : -len('"}')]


# The maps written last, and their bytes: a branch begins with the map of the entry it starts from, so that making many
# branches of one state spells a large map out once.
_last_maps: tuple[tuple[dict[str, Pin], bytes], ...] = ()


def _map_bytes(tables: dict[str, Pin]) -> bytes:
    global _last_maps  # noqa: PLW0603  (replaced as a whole: whoever sees older ones only does the work again)
    for known, body in _last_maps:
        if known == tables:
            return body
    body = _dumped(commit_v1.pins_document(tables))
    _last_maps = ((dict(tables), body), *_last_maps[: limits.MAPS_REMEMBERED_MAX - 1])
    return body


def _no_whole_map(number: int) -> dict[str, Pin]:
    raise ValueError(f"its table map counts from entry {number}, which is not at hand")


def read_record(body: bytes, *, path: str, whole_map: commit_v1.WholeMap = _no_whole_map) -> Record:
    """The log entry in `body`; `path` is for messages, `whole_map` finds the map of an earlier entry."""
    checksum = _checked_sum(body, path=path)
    readers = {version: partial(_with_map, reader, whole_map) for version, reader in _RECORD_READERS.items()}
    found = _read(body, readers, member="format", what="log entry", path=path)
    return replace(found, checksum=found.checksum or checksum)


def _with_map(
    reader: Callable[[dict[str, Any], commit_v1.WholeMap], Record], whole_map: commit_v1.WholeMap, found: dict[str, Any]
) -> Record:
    return reader(found, whole_map)


def footprint_bytes(footprint: Footprint) -> bytes:
    """A footprint too large for its record, as the file of its own that is put."""
    return _dumped({"format": _FOOTPRINT_FORMAT, "footprint": commit_v1.footprint_document(footprint)})


def read_footprint(body: bytes, *, path: str) -> Footprint:
    """The footprint in `body`."""
    readers = {_FOOTPRINT_FORMAT: lambda found: commit_v1.read_footprint(found["footprint"])}
    return _read(body, readers, member="format", what="footprint", path=path)


def intent_bytes(intent: Intent) -> bytes:
    """An intent as it is put."""
    return _summed(_dumped(intent_v1.intent_document(intent)))


def read_intent(body: bytes, *, path: str) -> Intent:
    """The intent in `body`; those of older releases have no checksum."""
    _checked_sum(body, path=path, what="intent")
    return _read(body, _INTENT_READERS, member="schema_version", what="intent", path=path)


def completed_bytes(completed: Completed) -> bytes:
    """An intent's second document as it is put."""
    return _summed(_dumped(intent_v1.completed_document(completed)))


def read_completed(body: bytes, *, path: str) -> Completed:
    """An intent's second document in `body`; those of older releases have no checksum."""
    _checked_sum(body, path=path, what="staged note")
    return _read(body, _COMPLETED_READERS, member="schema_version", what="staged note", path=path)


def stamp_bytes(stamp: Stamp) -> bytes:
    """The format stamp as it is put."""
    more: dict[str, Any] = {"fence": "external"} if stamp.fenced_externally else {}
    more |= {name: value for name in ("fence_id", "durability") if (value := getattr(stamp, name))}
    if stamp.log_cut_s is not None:
        more["log_cut_s"] = stamp.log_cut_s
    if stamp.ends_announced:
        more["branch_ends"] = "announced"
    return _dumped({"format": stamp.format, "graph": stamp.graph} | more)


def read_stamp(body: bytes, *, path: str) -> Stamp:
    """The format stamp in `body`; refuses formats newer than this release."""
    found = _loaded(body, what="format stamp", path=path)
    number = found.get("format")
    if not isinstance(number, int) or isinstance(number, bool):
        raise FormatError(
            f"the format stamp {path} does not say which format the graph has (it says {number!r}); "
            "restore the file from a backup or another copy of the graph",
            path=path,
        )
    if number > FORMAT:
        raise FormatError(
            f"the graph at {path} has format {number}, newer than the maximum {FORMAT} this release reads: "
            "upgrade omnigraph first",
            code="format_newer",
            path=path,
            found=number,
            maximum=FORMAT,
        )
    graph = found.get("graph", "")
    if not isinstance(graph, str) or (number >= 1 and not graph):
        raise FormatError(f"the format stamp {path} names no graph id; restore the file from a backup", path=path)
    return Stamp(
        number,
        graph,
        fenced_externally=found.get("fence") == "external",
        fence_id=str(found.get("fence_id", "")),
        durability=str(found.get("durability", "")),
        log_cut_s=_seconds(found.get("log_cut_s")),
        ends_announced=found.get("branch_ends") == "announced",
    )


def _seconds(found: object) -> float | None:
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and found >= 0 else None


def _read(
    body: bytes, readers: Mapping[int, Callable[[dict[str, Any]], _Value]], *, member: str, what: str, path: str
) -> _Value:
    found = _loaded(body, what=what, path=path)
    version = found.get(member)
    newest = max(readers)
    if isinstance(version, int) and version > newest:
        raise FormatError(
            f"the {what} {path} has {member}={version}, newer than the maximum {newest} this release reads: "
            "upgrade omnigraph first",
            code="format_newer",
            path=path,
            found=version,
            maximum=newest,
        )
    reader = readers.get(version) if isinstance(version, int) else None
    if reader is None:
        raise FormatError(f"the {what} {path} has no readable {member} (found {version!r})", path=path)
    try:
        return reader(found)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise FormatError(f"the {what} {path} is damaged: {type(fault).__name__}: {fault}", path=path) from fault


def _loaded(body: bytes, *, what: str, path: str) -> dict[str, Any]:
    try:
        # Decoded here: from bytes, it would guess at an encoding and complain of that one.
        found = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as fault:
        raise FormatError(f"the {what} {path} is not readable JSON: {fault}", path=path) from fault
    if not isinstance(found, dict):
        raise FormatError(f"the {what} {path} is not a JSON object", path=path)
    return found


def _dumped(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
