"""Convert error responses of a server into the errors that an embedded graph raises."""

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
# Fields of a body that hold the details of an error, at most one in each body.
_DETAILS = (
    "precondition_failure",
    "resource_limit",
    "change_feed_gap",
    "blob_range",
    "external_blob_source",
    "recovery_required",
)
# Error class and code by status, for refusals of the server itself, whose bodies name no class.
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


def error_of_answer(status: int, content: bytes) -> errors.GraphError:
    """Return the error that an error response describes; its body is not JSON if a proxy answered."""
    try:
        body = json.loads(content)
        message = str(body["error"])
    except (ValueError, TypeError, KeyError):
        return unexpected_answer(status, content)
    named = getattr(errors, str(body.get("kind")), None)
    if not (isinstance(named, type) and issubclass(named, errors.GraphError)):
        return _refusal(status, message, body)
    return _rebuilt(named, message, str(body.get("reason", named.code)), body)


def _rebuilt(kind: type[errors.GraphError], message: str, code: str, body: Body) -> errors.GraphError:
    if issubclass(kind, errors.ParseError):
        return _parse_error(kind, message, code, body)
    if issubclass(kind, errors.ChangeRefusedError):
        document = body.get("change_diff_refusal", {})
        return kind(
            message,
            reason=document.get("reason", ""),
            commit=document.get("graph_commit_id", ""),
            type_name=document.get("type_name"),
        )
    if issubclass(kind, errors.ConflictError):
        return kind(message, conflicts=_conflicts(kind, body), code=code)
    return kind(message, code=code, **_details(body))


def _parse_error(kind: type[errors.ParseError], message: str, code: str, body: Body) -> errors.ParseError:
    """Split the text of a parse error: its first line is the message, the rest shows the position."""
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
        return tuple(parse_merge_conflict(conflict) for conflict in body.get("merge_conflicts", ()))
    if issubclass(kind, errors.RevertConflictError):
        return tuple(_revert_conflict(conflict) for conflict in body.get("revert_conflicts", ()))
    found = _conflict(body)
    return () if found is None else (found,)


def _conflict(body: Body) -> Conflict | None:
    if "key_conflict" in body:
        document = body["key_conflict"]
        return KeyConflict(_type_key(document), document.get("entity_id", ""))
    if "read_set_conflict" in body:
        document = body["read_set_conflict"]
        return ReadSetChanged(document["member"], document["expected"], document["actual"])
    if "manifest_conflict" in body:
        document = body["manifest_conflict"]
        return ExpectedVersionMismatch(document["table_key"], int(document["expected"]), int(document["actual"]))
    return None


def parse_merge_conflict(document: Body) -> MergeConflict:
    """Parse a conflict of a merge."""
    return MergeConflict(
        MergeConflictKind(document["kind"]),
        _type_key(document),
        document["entity_id"],
        document["message"],
        base=document.get("base"),
        source=document.get("source"),
        target=document.get("target"),
        properties=tuple(document.get("properties", ())),
    )


def _revert_conflict(document: Body) -> RevertConflict:
    return RevertConflict(
        RevertConflictKind(document["kind"]), _type_key(document), document["entity_id"], document["message"]
    )


def _type_key(document: Body) -> str:
    kind, name = document["entity_kind"], document.get("type_name")
    return f"{kind}:{name}" if name else str(kind)


def _refusal(status: int, message: str, body: Body) -> errors.GraphError:
    """Return the error for a request that the server refused before it reached a graph."""
    if status >= 500:
        kind: type[errors.GraphError] = errors.UnavailableError if status == 503 else errors.InternalError
        return kind(message)
    kind, code = _OF_STATUS.get(status, (errors.InvalidRequestError, "bad_request"))
    if issubclass(kind, errors.ConflictError):
        return kind(message, code=code)
    return kind(message, code=code, **_details(body))


def unexpected_answer(status: int, content: bytes) -> errors.GraphError:
    """Return the error for an answer that an omnigraph server did not send: of a proxy, or another service."""
    text = content[:200].decode("utf-8", "replace").strip()
    message = f"the answer has status {status} and is not from an omnigraph server{f': {text}' if text else ''}"
    if status in (502, 503, 504):
        return errors.UnavailableError(message)
    return errors.InvalidRequestError(message, code="no_server")
