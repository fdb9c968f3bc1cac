"""Every error a caller can meet, grouped by what the caller does next.

    GraphError                        code, message                 HTTP
    ├── InvalidRequestError           change what you asked         400   (also ValueError)
    │   ├── ParseError                has a line, column and caret
    │   └── ConstraintError           names the rows
    ├── NotFoundError                 name something that exists    404   (also LookupError)
    │   └── ReclaimedError            it was pruned: name a newer   410
    │       └── ChangeGapError        begin anew from a baseline    410
    ├── AlreadyExistsError            choose another name           409
    ├── ConflictError                 retry on a fresh base,        409
    │                                 or resolve; has conflicts
    │   ├── MergeConflictError        has all of a merge's conflicts
    │   ├── RevertConflictError       has all that is in the way
    │   └── ChangeRefusedError        begin anew from a baseline
    ├── PreconditionError             look again, then decide       412
    ├── OutcomeUnknownError           reopen and look               503
    ├── LimitError                    ask for less                  413
    ├── UnavailableError              try again later               503
    ├── BlobSourceError               see to what lies there        424
    ├── PermissionDeniedError         ask for access                403
    ├── FormatError                   upgrade, or restore           500
    └── InternalError                 report it                     500

`code` is stable and only ever added to; the message is for people.
"""

from typing import Any


class GraphError(Exception):
    """The base of all of them."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details: dict[str, Any] = details


class InvalidRequestError(GraphError, ValueError):
    """What was asked cannot be done as it was asked."""

    code = "bad_request"


class ParseError(InvalidRequestError):
    """A text in one of the languages is wrong; `report` shows where, with a caret."""

    code = "parse_error"

    def __init__(
        self, message: str, *, stage: str = "parse", line: int = 1, column: int = 1, report: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, code=f"{stage}_error")
        self.stage = stage
        self.line = line
        self.column = column
        self.report = report
        self.hint = hint

    def __str__(self) -> str:
        """`parse error: …`, `catalog error: …` or `type error: …`, with the caret report below where there is one."""
        first = f"{self.stage} error: {self.message}"
        return f"{first}\n{self.report}" if self.report else first


class ConstraintError(InvalidRequestError):
    """Rows break a rule of the schema."""

    code = "constraint_violation"


class NotFoundError(GraphError, LookupError):
    """Something named does not exist."""

    code = "not_found"


class ReclaimedError(NotFoundError):
    """A commit that was there has been pruned."""

    code = "version_reclaimed"


class ChangeGapError(ReclaimedError):
    """The change feed cannot go on: the next commit was pruned. Its details name the commit."""

    code = "change_feed_gap"


class AlreadyExistsError(GraphError):
    """A name is taken."""

    code = "already_exists"


class ConflictError(GraphError):
    """Somebody else's change stands in the way; `conflicts` says which."""

    code = "conflict"

    def __init__(self, message: str, *, conflicts: tuple[Any, ...] = (), code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.conflicts = conflicts


class MergeConflictError(ConflictError):
    """Two branches did what cannot both stand; `conflicts` lists all of it. Nothing was published."""

    code = "merge_conflicts"


class RevertConflictError(ConflictError):
    """A commit cannot be undone; `conflicts` lists all that is in the way. Nothing was published."""

    code = "revert_conflicts"


class ChangeRefusedError(ConflictError):
    """What a commit changed cannot be told entity by entity; `reason` says why.

    Attributes:
        reason: `parentless_commit` or `schema_boundary`.
    """

    code = "change_diff_refusal"

    def __init__(self, message: str, *, reason: str = "", commit: str = "", type_name: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.details = {"reason": reason, "graph_commit_id": commit}
        if type_name is not None:
            self.details["type_name"] = type_name


class PreconditionError(GraphError):
    """The caller's own precondition does not hold."""

    code = "precondition_failed"


class OutcomeUnknownError(GraphError):
    """The store never said whether the write landed, and could not be asked."""

    code = "outcome_unknown"


class LimitError(GraphError):
    """A bound was passed."""

    code = "limit_exceeded"


class UnavailableError(GraphError):
    """Something the graph needs does not answer now."""

    code = "unavailable"


class BlobSourceError(GraphError):
    """A blob that lies elsewhere, at an approved place, cannot be read there. Its details name `uri` and `reason`."""

    code = "external_blob_source"


class PermissionDeniedError(GraphError, PermissionError):
    """The graph was opened read-only, or the store refuses access."""

    code = "forbidden"


class FormatError(GraphError):
    """Something on disk is newer than this release, damaged, or not a graph."""

    code = "format"


class InternalError(GraphError):
    """A rule of our own was broken."""

    code = "internal"


def beyond_limit(resource: str, *, actual: int, limit: int) -> LimitError:
    """The error of an input that is larger than one call may bring."""
    return LimitError(
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        code="resource_limit",
        resource=resource,
        limit=limit,
        actual=actual,
    )
