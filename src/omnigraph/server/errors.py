"""The one table from errors to HTTP statuses and bodies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph import errors, limits
from omnigraph.api.documents import merge_conflict_document
from omnigraph.model.conflict import ExpectedVersionMismatch, KeyConflict, ReadSetChanged, RevertConflict

Details = Mapping[str, Any]
# Error codes whose status differs from that of their class.
_STATUS_BY_CODE = {"blob_range": 416}


class Refusal(Exception):  # noqa: N818  (a response, not a fault)
    """A request that the server itself refuses, without calling a graph.

    Attributes:
        status: HTTP status.
        code: stable, for programs.
        message: for people.
        details: further fields of the body.
        headers: added to the response.
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
        """Return the JSON document of the response."""
        return {"error": self.message, "code": self.code, **self.details}


def too_many_requests(message: str, *, retry_after_s: int = limits.SERVER_RETRY_AFTER_S) -> Refusal:
    """Build a 429 refusal that says when to retry."""
    return Refusal(429, message, code="too_many_requests", headers={"Retry-After": str(retry_after_s)})


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """How one class of errors is reported.

    Attributes:
        error: matches subclasses; the first matching row counts.
        status: HTTP status.
        code: from the contract; None if it has none.
        details: computes further fields of the body.
    """

    error: type[errors.GraphError]
    status: int
    code: str | None
    details: Callable[[Any], Details] = field(default=lambda _: {})


def _conflict_details(error: errors.ConflictError) -> Details:
    if not error.conflicts:
        return {}
    match error.conflicts[0]:
        case KeyConflict(type_key, entity_id):
            kind, _, name = type_key.partition(":")
            return {"key_conflict": {"entity_kind": kind, "type_name": name, "entity_id": entity_id}}
        case ReadSetChanged(member, expected, actual):
            details: dict[str, Any] = {"read_set_conflict": {"member": member, "expected": expected, "actual": actual}}
            # Only tables have numeric versions; the schema or the branch may have changed instead.
            if ":" in member and all(version.isascii() and version.isdigit() for version in (expected, actual)):
                numbers = {"table_key": member, "expected": expected, "actual": actual}
                details["manifest_conflict"] = numbers
            return details
        case ExpectedVersionMismatch(table_key, expected, actual):
            kind, _, name = table_key.partition(":")
            return {
                "manifest_conflict": {"table_key": table_key, "expected": str(expected), "actual": str(actual)},
                "published_dataset_version_conflict": {
                    "entity_kind": kind,
                    "type_name": name,
                    "expected_published_dataset_version": str(expected),
                    "actual_published_dataset_version": str(actual),
                },
            }
        case _:
            return {}


def _merge_details(error: errors.MergeConflictError) -> Details:
    conflicts = [merge_conflict_document(conflict) for conflict in error.conflicts]
    return {"merge_conflicts": conflicts} if conflicts else {}


def _revert_details(error: errors.RevertConflictError) -> Details:
    return {"revert_conflicts": [_revert_conflict_document(conflict) for conflict in error.conflicts]}


def _revert_conflict_document(conflict: RevertConflict) -> dict[str, Any]:
    kind, _, name = conflict.type_key.partition(":")
    return {
        "entity_kind": kind,
        "type_name": name or None,
        "entity_id": conflict.entity_id,
        "kind": conflict.kind.value,
        "message": conflict.message,
    }


def _gap_details(error: errors.ChangeGapError) -> Details:
    return {"change_feed_gap": _select(error.details, "cursor", "first_unreadable_commit_id")}


def _diff_details(error: errors.ChangeRefusedError) -> Details:
    return {"change_diff_refusal": dict(error.details)}


def _precondition_details(error: errors.PreconditionError) -> Details:
    return {"precondition_failure": _select(error.details, "expected", "actual")}


def _limit_details(error: errors.LimitError) -> Details:
    details = error.details
    if "resource" in details:
        return {"resource_limit": _select(details, "resource", "limit", "actual")}
    if "bytes_max" in details:
        return {
            "resource_limit": {
                "resource": error.code,
                "limit": details["bytes_max"],
                "actual": details["bytes_max"] + 1,
            }
        }
    return {}


def _blob_source_details(error: errors.BlobSourceError) -> Details:
    return {"external_blob_source": _select(error.details, "uri", "reason")}


def _request_details(error: errors.InvalidRequestError) -> Details:
    if error.code == "blob_range":
        return {"blob_range": _select(error.details, "start", "end", "length")}
    if isinstance(error, errors.ParseError):
        return {"place": {"line": error.line, "column": error.column}}
    return {}


def _select(details: Details, *names: str) -> dict[str, Any]:
    return {name: details[name] for name in names if details.get(name) is not None}


ERROR_TABLE: tuple[ErrorRow, ...] = (
    ErrorRow(errors.InvalidRequestError, 400, "bad_request", _request_details),
    ErrorRow(errors.ChangeGapError, 410, None, _gap_details),
    ErrorRow(errors.ReclaimedError, 410, None),
    ErrorRow(errors.NotFoundError, 404, "not_found"),
    ErrorRow(errors.AlreadyExistsError, 409, "conflict"),
    ErrorRow(errors.MergeConflictError, 409, "conflict", _merge_details),
    ErrorRow(errors.RevertConflictError, 409, "conflict", _revert_details),
    ErrorRow(errors.ChangeRefusedError, 409, "conflict", _diff_details),
    ErrorRow(errors.ConflictError, 409, "conflict", _conflict_details),
    ErrorRow(errors.PreconditionError, 412, None, _precondition_details),
    ErrorRow(errors.LimitError, 413, "bad_request", _limit_details),
    ErrorRow(errors.PermissionDeniedError, 403, "forbidden"),
    ErrorRow(errors.OutcomeUnknownError, 503, None),
    ErrorRow(errors.UnavailableError, 503, None),
    ErrorRow(errors.BlobSourceError, 424, None, _blob_source_details),
    ErrorRow(errors.GraphError, 500, "internal"),
)
"""Every error of the product, most specific first."""


def find_row(error: errors.GraphError) -> ErrorRow:
    """Return the row of the table that matches an error."""
    return next(row for row in ERROR_TABLE if isinstance(error, row.error))


def error_response(error: errors.GraphError) -> tuple[int, dict[str, Any]]:
    """Return the status and body that report an error.

    `error`, `code` and the details belong to the contract; `kind` (the class) and `reason` (the error's own code) let
    clients raise the same error.
    """
    row = find_row(error)
    body: dict[str, Any] = {"error": str(error)}
    if row.code is not None:
        body["code"] = row.code
    body |= row.details(error)
    body |= {"kind": _public_class(error), "reason": error.code}
    return _STATUS_BY_CODE.get(error.code, row.status), body


def _public_class(error: errors.GraphError) -> str:
    """Return the name of the nearest class in `omnigraph.errors`."""
    return next(base.__name__ for base in type(error).__mro__ if base.__module__ == errors.__name__)
