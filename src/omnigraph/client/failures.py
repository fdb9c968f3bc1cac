"""Errors that a server answered with, raised here as the errors an embedded graph raises."""

import json
from collections.abc import Mapping
from typing import Any

from omnigraph import errors
from omnigraph.model.conflict import (
    Conflict,
    ExpectedVersionMismatch,
    KeyConflict,
    MergeConflict,
    MergeConflictKind,
    ReadSetChanged,
    RevertConflict,
    RevertConflictKind,
)

Body = Mapping[str, Any]
# Members of a body that hold the details of one class of errors.
_DETAILS = (
    "precondition_failure",
    "resource_limit",
    "change_feed_gap",
    "blob_range",
    "external_blob_source",
    "recovery_required",
)
# What a refusal of the server itself is, which names no class: by its status.
_OF_STATUS: Mapping[int, tuple[type[errors.GraphError], str]] = {
    401: (errors.PermissionDeniedError, "unauthorized"),
    403: (errors.PermissionDeniedError, "forbidden"),
    404: (errors.NotFoundError, "not_found"),
    405: (errors.InvalidRequestError, "method_not_allowed"),
    408: (errors.UnavailableError, "too_slow"),
    409: (errors.ConflictError, "conflict"),
    412: (errors.PreconditionError, "precondition_failed"),
    413: (errors.LimitError, "resource_limit"),
    416: (errors.InvalidRequestError, "blob_range"),
    429: (errors.UnavailableError, "too_many_requests"),
}


def failure(status: int, content: bytes) -> errors.GraphError:
    """The error that an answer tells of.

    Args:
        status (int): of the answer.
        content (bytes): its body, which is JSON unless somebody between us and the server answered.

    Returns:
        errors.GraphError: to be raised.
    """
    try:
        body = json.loads(content)
        message = str(body["error"])
    except (ValueError, TypeError, KeyError):
        return foreign(status, content)
    named = getattr(errors, str(body.get("kind")), None)
    if not (isinstance(named, type) and issubclass(named, errors.GraphError)):
        return _refusal(status, message, body)
    return _rebuilt(named, message, str(body.get("reason", named.code)), body)


def _rebuilt(kind: type[errors.GraphError], message: str, code: str, body: Body) -> errors.GraphError:
    if issubclass(kind, errors.ParseError):
        return _parse_error(kind, message, code, body)
    if issubclass(kind, errors.ChangeRefusedError):
        told = body.get("change_diff_refusal", {})
        return kind(
            message,
            reason=told.get("reason", ""),
            commit=told.get("graph_commit_id", ""),
            type_name=told.get("type_name"),
        )
    if issubclass(kind, errors.ConflictError):
        return kind(message, conflicts=_conflicts(kind, body), code=code)
    return kind(message, code=code, **_details(body))


def _parse_error(kind: type[errors.ParseError], message: str, code: str, body: Body) -> errors.ParseError:
    """A mistake in a text: its first line is the message, what follows shows the place."""
    stage = code.removesuffix("_error")
    first, _, report = message.partition("\n")
    _, _, hint = report.partition("= hint: ")
    place = body.get("place", {})
    return kind(
        first.removeprefix(f"{stage} error: "),
        stage=stage,
        line=place.get("line", 1),
        column=place.get("column", 1),
        report=report,
        hint=hint.strip(),
    )


def _details(body: Body) -> dict[str, Any]:
    return next((dict(body[name]) for name in _DETAILS if isinstance(body.get(name), Mapping)), {})


def _conflicts(kind: type[errors.ConflictError], body: Body) -> tuple[object, ...]:
    if issubclass(kind, errors.MergeConflictError):
        return tuple(merge_conflict(each) for each in body.get("merge_conflicts", ()))
    if issubclass(kind, errors.RevertConflictError):
        return tuple(_revert_conflict(each) for each in body.get("revert_conflicts", ()))
    found = _conflict(body)
    return () if found is None else (found,)


def _conflict(body: Body) -> Conflict | None:
    if "key_conflict" in body:
        told = body["key_conflict"]
        return KeyConflict(_type_key(told), told.get("entity_id", ""))
    if "read_set_conflict" in body:
        told = body["read_set_conflict"]
        return ReadSetChanged(told["member"], told["expected"], told["actual"])
    if "manifest_conflict" in body:
        told = body["manifest_conflict"]
        return ExpectedVersionMismatch(told["table_key"], told["expected"], told["actual"])
    return None


def merge_conflict(told: Body) -> MergeConflict:
    """A conflict of a merge."""
    return MergeConflict(
        MergeConflictKind(told["kind"]),
        _type_key(told),
        told["entity_id"],
        told["message"],
        base=told.get("base"),
        source=told.get("source"),
        target=told.get("target"),
        properties=tuple(told.get("properties", ())),
    )


def _revert_conflict(told: Body) -> RevertConflict:
    return RevertConflict(RevertConflictKind(told["kind"]), _type_key(told), told["entity_id"], told["message"])


def _type_key(told: Body) -> str:
    kind, name = told["entity_kind"], told.get("type_name")
    return f"{kind}:{name}" if name else str(kind)


def _refusal(status: int, message: str, body: Body) -> errors.GraphError:
    """What the server itself refused, before it asked a graph."""
    if status >= 500:
        kind: type[errors.GraphError] = errors.UnavailableError if status == 503 else errors.InternalError
        return kind(message)
    kind, code = _OF_STATUS.get(status, (errors.InvalidRequestError, "bad_request"))
    if issubclass(kind, errors.ConflictError):
        return kind(message, code=code)
    return kind(message, code=code, **_details(body))


def foreign(status: int, content: bytes) -> errors.GraphError:
    """An answer that is none of ours: of a proxy, or of something else that listens there.

    Args:
        status (int): of the answer.
        content (bytes): its body, or the beginning of it.

    Returns:
        errors.GraphError: to be raised.
    """
    said = content[:200].decode("utf-8", "replace").strip()
    message = f"the answer has status {status} and is none of an omnigraph server{f': {said}' if said else ''}"
    if status in (502, 503, 504):
        return errors.UnavailableError(message)
    return errors.InvalidRequestError(message, code="no_server")
