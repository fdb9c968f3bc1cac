"""Map exceptions of Lance to errors of Omnigraph.

Lance has almost no exception classes of its own: most of what goes wrong arrives as `ValueError`, `OSError` or
`ArrowInvalid`, and only the text tells which. So the text is judged here, once, and every call into Lance stands inside
`mapped`.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from lance.commit import CommitConflictError

from omnigraph.errors import (
    AlreadyExistsError,
    FormatError,
    GraphError,
    InternalError,
    InvalidRequestError,
    LimitError,
    PermissionDeniedError,
    UnavailableError,
)

VERSION_RECLAIMED = "version_reclaimed"
DAMAGED_TABLE = "damaged_table"
STORE_FULL = "store_full"

# Everything that is known to come out of Lance and Arrow. Others are mistakes of our own and pass unchanged.
_FOREIGN: tuple[type[Exception], ...] = (
    MemoryError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    pa.ArrowException,
)

_FULL = re.compile(r"no space left on device|disk quota exceeded|os error (28|122)\b|quotaexceeded", re.IGNORECASE)
_EXISTS = re.compile(r"dataset already exists", re.IGNORECASE)
_DENIED = re.compile(
    r"permission denied|access ?denied|os error (1|13|30)\b|read-only file system|forbidden|unauthori[sz]ed|"
    r"unauthenticated|invalidaccesskeyid|signaturedoesnotmatch|status (code )?:?\s*40[13]\b",
    re.IGNORECASE,
)
# Only what says for certain that an object is not there: whoever reads this may conclude that it was reclaimed.
_MISSING = re.compile(
    r"was not found|\bnot found: |no such file or directory|os error 2\b|nosuchkey|404 not found",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"generic (s3|gcs|microsoftazure|http) error|error sending request|error performing|timed? ?out|connection|"
    r"temporarily|too many open files|os error (4|11|24|104|110|111|116)\b|input/output error|slow ?down|"
    r"service unavailable|internal server error|broken pipe|retry_timeout|dns error",
    re.IGNORECASE,
)
_DAMAGED = re.compile(
    r"protobuf|invalid range|range was invalid|file size is too small|sufficient data|corrupt|unexpected end|truncated|"
    r"invalid (footer|manifest|metadata|file)|checksum|decompress|unexpected eof|failed to fill whole buffer|"
    r"overlapping fragments|snapshot mixes|reader producer terminated|version not found error",
    re.IGNORECASE,
)
# Lance appends where in its own source an error arose: in these places it takes files apart.
_TAKING_FILES_APART = re.compile(r"rust/lance-(file|encoding)/src/|rust/lance-table/src/io/|rust/lance-io/src/utils")
_PLACES = re.compile(r",? \S+\.rs:\d+:\d+")
# Where rows come from Python, their error is told twice: in words, then with every call on the way.
_CALLS = re.compile(r"\.? *Detail: Python exception: Traceback.*", re.DOTALL)
_REQUEST = re.compile(
    r"^invalid user input: (?!dataset snapshot)|divide by zero|cast error|arithmetic overflow", re.IGNORECASE
)

_DENIED_ERRNOS = {errno.EACCES, errno.EPERM, errno.EROFS}
_TRANSIENT_ERRNOS = {errno.EAGAIN, errno.EINTR, errno.EIO, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE, errno.ESTALE}
_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}


def as_graph_error(error: Exception, table: str, version: int | None) -> GraphError:
    """What a foreign exception means for the caller."""
    text = str(error)
    reason = _CALLS.sub("", _PLACES.sub("", text))  # the places are for those who develop Lance
    number = error.errno if isinstance(error, OSError) else None
    where = f"table {table}" if version is None else f"table {table} at version {version}"
    if isinstance(error, CommitConflictError):
        # Detached versions have random names and never conflict; running out of tries means the store misbehaves.
        return UnavailableError(f"{where}: a new version could not be written: {reason}", table=table)
    if isinstance(error, MemoryError):
        return LimitError(f"{where}: out of memory: {reason}", table=table)
    in_a_file = _TAKING_FILES_APART.search(text) is not None
    if _REQUEST.search(text) and not in_a_file:
        # Before all that follows: the text quotes what the caller wrote, which may say anything.
        return InvalidRequestError(f"{where}: {reason}", table=table)
    if number in _FULL_ERRNOS or _FULL.search(text):
        return UnavailableError(f"{where}: the store is full: {reason}", code=STORE_FULL, table=table)
    if _EXISTS.search(text):
        return AlreadyExistsError(f"{where} exists already", table=table)
    if isinstance(error, PermissionError) or number in _DENIED_ERRNOS or _DENIED.search(text):
        return PermissionDeniedError(f"{where}: the store refuses access: {reason}", table=table)
    if isinstance(error, FileNotFoundError) or _MISSING.search(text):
        return FormatError(
            f"{where}: a file it refers to is not there: {reason}", code=VERSION_RECLAIMED, table=table, version=version
        )
    if isinstance(error, TimeoutError | ConnectionError) or number in _TRANSIENT_ERRNOS or _TRANSIENT.search(text):
        return UnavailableError(f"{where}: the store does not answer: {reason}", table=table)
    if in_a_file or _DAMAGED.search(text):
        return FormatError(f"{where} is damaged: {reason}", code=DAMAGED_TABLE, table=table, version=version)
    return InternalError(f"{where}: {type(error).__name__}: {text}", table=table)


def is_panic(error: BaseException) -> bool:
    """Whether native code gave up; the class has no name that could be imported."""
    return type(error).__name__ == "PanicException" and type(error).__module__ == "pyo3_runtime"


@contextmanager
def mapped(table: str, version: int | None = None) -> Iterator[None]:
    """Run calls into Lance; whatever they raise leaves as one of `omnigraph.errors`."""
    try:
        yield
    except GraphError:
        raise
    except _FOREIGN as error:
        raise as_graph_error(error, table, version) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        # A panic is no `Exception`, so that nobody hides it by accident; our callers handle exceptions.
        raise FormatError(
            f"table {table} is damaged, Lance gave up on it: {error}; run verify",
            code=DAMAGED_TABLE,
            table=table,
            version=version,
        ) from error
