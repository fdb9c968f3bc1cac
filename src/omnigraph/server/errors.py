"""Which answer an error is: the one table from errors to statuses and bodies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph import errors, limits
from omnigraph.api.documents import merge_conflict_document
from omnigraph.model.conflict import ExpectedVersionMismatch, KeyConflict, ReadSetChanged, RevertConflict

Details = Mapping[str, Any]
# Fine codes that have a status of their own, whatever their class.
_STATUS_OF_REASON = {"blob_range": 416}


class Refusal(Exception):  # noqa: N818  (an answer, not a fault)
    """A request that the server itself refuses, before any graph is asked.

    Attributes:
        status: of the answer.
        code: the stable word for it.
        message: what it is, for people.
        details: further members of the body.
        headers: of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "bad_request",
        details: Details | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details or {}
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """The document of the answer."""
        return {"error": self.message, "code": self.code, **self.details}


def too_many(message: str, *, retry_after_s: int = limits.SERVER_RETRY_AFTER_S) -> Refusal:
    """The refusal of what would be too much at once, and after how long to come again."""
    return Refusal(429, message, code="too_many_requests", headers={"Retry-After": str(retry_after_s)})


@dataclass(frozen=True, slots=True)
class Row:
    """One class of errors.

    Attributes:
        error: the class; the first row that fits counts.
        status: of the answer.
        code: the contract's word for it; None where it has none.
        details: what else the body says.
    """

    error: type[errors.GraphError]
    status: int
    code: str | None
    details: Callable[[Any], Details] = field(default=lambda _: {})


def _conflict(error: errors.ConflictError) -> Details:
    if not error.conflicts:
        return {}
    match error.conflicts[0]:
        case KeyConflict(type_key, entity_id):
            kind, _, name = type_key.partition(":")
            return {"key_conflict": {"entity_kind": kind, "type_name": name, "entity_id": entity_id}}
        case ReadSetChanged(member, expected, actual):
            found: dict[str, Any] = {"read_set_conflict": {"member": member, "expected": expected, "actual": actual}}
            # Of a type, versions are numbers; of the schema or the branch, something else changed.
            if ":" in member and all(each.isascii() and each.isdigit() for each in (expected, actual)):
                numbers = {"table_key": member, "expected": int(expected), "actual": int(actual)}
                found["manifest_conflict"] = numbers
            return found
        case ExpectedVersionMismatch(table_key, expected, actual):
            kind, _, name = table_key.partition(":")
            return {
                "manifest_conflict": {"table_key": table_key, "expected": expected, "actual": actual},
                "published_dataset_version_conflict": {
                    "entity_kind": kind,
                    "type_name": name,
                    "expected_published_dataset_version": expected,
                    "actual_published_dataset_version": actual,
                },
            }
        case _:
            return {}


def _merge_conflicts(error: errors.MergeConflictError) -> Details:
    found = [merge_conflict_document(each) for each in error.conflicts]
    return {"merge_conflicts": found} if found else {}


def _revert_conflicts(error: errors.RevertConflictError) -> Details:
    return {"revert_conflicts": [_revert_conflict(each) for each in error.conflicts]}


def _revert_conflict(conflict: RevertConflict) -> dict[str, Any]:
    kind, _, name = conflict.type_key.partition(":")
    return {
        "entity_kind": kind,
        "type_name": name or None,
        "entity_id": conflict.entity_id,
        "kind": conflict.kind.value,
        "message": conflict.message,
    }


def _gap(error: errors.ChangeGapError) -> Details:
    return {"change_feed_gap": _present(error.details, "cursor", "first_unreadable_commit_id")}


def _refused_diff(error: errors.ChangeRefusedError) -> Details:
    return {"change_diff_refusal": dict(error.details)}


def _precondition(error: errors.PreconditionError) -> Details:
    return {"precondition_failure": _present(error.details, "expected", "actual")}


def _limit(error: errors.LimitError) -> Details:
    said = error.details
    if "resource" in said:
        return {"resource_limit": _present(said, "resource", "limit", "actual")}
    if "bytes_max" in said:
        return {"resource_limit": {"resource": error.code, "limit": said["bytes_max"], "actual": said["bytes_max"] + 1}}
    return {}


def _source(error: errors.BlobSourceError) -> Details:
    return {"external_blob_source": _present(error.details, "uri", "reason")}


def _request(error: errors.InvalidRequestError) -> Details:
    if error.code == "blob_range":
        return {"blob_range": _present(error.details, "start", "end", "length")}
    if isinstance(error, errors.ParseError):
        return {"place": {"line": error.line, "column": error.column}}
    return {}


def _present(details: Details, *names: str) -> dict[str, Any]:
    return {name: details[name] for name in names if details.get(name) is not None}


TABLE: tuple[Row, ...] = (
    Row(errors.InvalidRequestError, 400, "bad_request", _request),
    Row(errors.ChangeGapError, 410, None, _gap),
    Row(errors.ReclaimedError, 410, None),
    Row(errors.NotFoundError, 404, "not_found"),
    Row(errors.AlreadyExistsError, 409, "conflict"),
    Row(errors.MergeConflictError, 409, "conflict", _merge_conflicts),
    Row(errors.RevertConflictError, 409, "conflict", _revert_conflicts),
    Row(errors.ChangeRefusedError, 409, "conflict", _refused_diff),
    Row(errors.ConflictError, 409, "conflict", _conflict),
    Row(errors.PreconditionError, 412, None, _precondition),
    Row(errors.LimitError, 413, "bad_request", _limit),
    Row(errors.PermissionDeniedError, 403, "forbidden"),
    Row(errors.OutcomeUnknownError, 503, None),
    Row(errors.UnavailableError, 503, None),
    Row(errors.BlobSourceError, 424, None, _source),
    Row(errors.GraphError, 500, "internal"),
)
"""Every error of the product, most special first."""


def row_of(error: errors.GraphError) -> Row:
    """The row of the table that an error belongs to."""
    return next(row for row in TABLE if isinstance(error, row.error))


def answer(error: errors.GraphError) -> tuple[int, dict[str, Any]]:
    """The status and the body that tell of an error.

    `error`, `code` and the details are the contract's; `kind` and `reason`, the class and the fine code, are for
    clients that raise the same error again.
    """
    row = row_of(error)
    body: dict[str, Any] = {"error": str(error)}
    if row.code is not None:
        body["code"] = row.code
    body |= row.details(error)
    body |= {"kind": _public_class(error), "reason": error.code}
    return _STATUS_OF_REASON.get(error.code, row.status), body


def _public_class(error: errors.GraphError) -> str:
    """The nearest class that `omnigraph.errors` has."""
    return next(each.__name__ for each in type(error).__mro__ if each.__module__ == errors.__name__)
