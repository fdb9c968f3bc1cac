"""Every error a caller can meet, grouped by what the caller does next.

    GraphError                        code, message                 HTTP
    ├── InvalidRequestError           change the request            400   (also ValueError)
    │   ├── ParseError                has a line, column and caret
    │   └── ConstraintError           names the rows
    ├── NotFoundError                 name something that exists    404   (also LookupError)
    │   └── ReclaimedError            it was pruned: name a newer   410
    │       └── ChangeGapError        restart from a baseline       410
    ├── AlreadyExistsError            choose another name           409
    ├── ConflictError                 retry on a fresh base,        409
    │                                 or resolve; has conflicts
    │   ├── MergeConflictError        has all of a merge's conflicts
    │   ├── RevertConflictError       has every obstacle
    │   └── ChangeRefusedError        restart from a baseline
    ├── PreconditionError             look again, then decide       412
    ├── OutcomeUnknownError           reopen and look               503
    ├── LimitError                    ask for less                  413
    ├── UnavailableError              try again later               503
    │   └── ClockError                set the clock, or repair      503
    ├── BlobSourceError               fix the external object       424
    ├── PermissionDeniedError         ask for access                403
    ├── FormatError                   upgrade, or restore           500
    └── InternalError                 report it                     500

`code` is stable and only ever added to; the message is for people.
"""

from typing import Any


class GraphError(Exception):
    """Base class of every error that this package raises on purpose."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details: dict[str, Any] = details


class InvalidRequestError(GraphError, ValueError):
    """The request is not valid; sending it again will not help."""

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
    """Rows violate a constraint of the schema."""

    code = "constraint_violation"


class NotFoundError(GraphError, LookupError):
    """A named object does not exist."""

    code = "not_found"


class ReclaimedError(NotFoundError):
    """The commit existed and has been pruned."""

    code = "version_reclaimed"


class ChangeGapError(ReclaimedError):
    """The change feed cannot go on: the next commit was pruned. Its details name the commit."""

    code = "change_feed_gap"


class AlreadyExistsError(GraphError):
    """The name is taken."""

    code = "already_exists"


class ConflictError(GraphError):
    """A concurrent change conflicts with this one; `conflicts` lists the conflicts."""

    code = "conflict"

    def __init__(self, message: str, *, conflicts: tuple[Any, ...] = (), code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.conflicts = conflicts


class MergeConflictError(ConflictError):
    """Two branches made conflicting changes; `conflicts` lists all of them. Nothing was published."""

    code = "merge_conflicts"


class RevertConflictError(ConflictError):
    """A commit cannot be reverted; `conflicts` lists every obstacle. Nothing was published."""

    code = "revert_conflicts"


class ChangeRefusedError(ConflictError):
    """The changes of a commit cannot be listed by entity; `reason` says why.

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
    """The store did not confirm whether the write was committed; read the log before retrying."""

    code = "outcome_unknown"


class LimitError(GraphError):
    """A limit was exceeded."""

    code = "limit_exceeded"


class UnavailableError(GraphError):
    """A service that the graph depends on does not respond; retry later."""

    code = "unavailable"


class ClockError(UnavailableError):
    """A commit would have a time that the store's own clock has yet to reach. Its details name both times."""

    code = "clock_ahead"


class BlobSourceError(GraphError):
    """An external blob at an approved location cannot be read; the details name `uri` and `reason`."""

    code = "external_blob_source"


class PermissionDeniedError(GraphError, PermissionError):
    """The graph was opened read-only, or the store refuses access."""

    code = "forbidden"


class FormatError(GraphError):
    """Something on disk is newer than this release, damaged, or not a graph."""

    code = "format"


class InternalError(GraphError):
    """An internal invariant does not hold: a bug."""

    code = "internal"


def beyond_limit(resource: str, *, actual: int, limit: int) -> LimitError:
    """Return the error for an input that exceeds a limit of one call."""
    return LimitError(
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        code="resource_limit",
        resource=resource,
        limit=limit,
        actual=actual,
    )
