"""What obstore's errors tell the caller.

obstore has one class for most failures and puts the rest into the text: the server's status, the code in its answer,
and whether the connection was ever made. What cannot be recognised is read in the careful way: a read may be repeated,
a conditional put may have happened.
"""

import re
from http import HTTPStatus

from obstore import exceptions

from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.object_stores.forwarding import RequestKind

# All that obstore raises: its own, and a few of Python's.
FOREIGN_ERRORS = (exceptions.BaseError, OSError, ValueError)

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
# Asked for keys because none were given, and the machine has none to give.
_NO_KEYS = re.compile(r"latest/api/token|latest/meta-data")
_NEVER_SENT = "kind: Connect,"
_NO_BUCKET = "<Code>NoSuchBucket</Code>"
_WRONG_REGION = "redirect without LOCATION"
# The server says that it did nothing and may be asked again, whatever the request was.
_TURNED_AWAY = frozenset({"SlowDown", "ConditionalRequestConflict", "OperationAborted", "RequestTimeout"})
_TURNED_AWAY_STATUS = frozenset({425, 429})
_REFUSED = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    exceptions.InvalidPathError,
    exceptions.UnknownConfigurationKeyError,
    ValueError,
)
_REFUSED_STATUS = frozenset({501, 507})
_TAKEN_STATUS = frozenset({409, 412})
_FINDS_NOTHING = frozenset({RequestKind.GET, RequestKind.COPY})


def mapped(error: Exception, kind: RequestKind, path: str, *, uri: str) -> StoreError:
    """The port's error for one of obstore's."""
    text = str(error)
    message = f"cannot {kind.replace('_', ' ')} {path!r} in {uri}: {reason(error)}"
    found_status = _STATUS.search(text)
    found_code = _CODE.search(text)
    status = int(found_status.group(1)) if found_status else 0
    code = found_code.group(1) if found_code else ""

    if _NO_KEYS.search(text):
        return StoreRefused(f"{message}; no keys were given and this machine has none", path=path)
    if _NO_BUCKET in text or _WRONG_REGION in text:
        return StoreRefused(message, path=path)
    if code in _TURNED_AWAY or status in _TURNED_AWAY_STATUS or _NEVER_SENT in text:
        return StoreTransient(message, path=path)
    if kind is RequestKind.PUT_IF_ABSENT and (
        status in _TAKEN_STATUS or isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError)
    ):
        return ObjectExists(message, path=path)
    if kind in _FINDS_NOTHING and is_missing_object(error):
        return ObjectNotFound(message, path=path)
    if isinstance(error, (*_REFUSED, FileNotFoundError)) or _is_no(status):
        return StoreRefused(message, path=path)
    if kind is RequestKind.PUT_IF_ABSENT:
        # The request may have arrived: sent again, it could be refused because of itself.
        return OutcomeUnknown(message, path=path)
    return StoreTransient(message, path=path)


def is_missing_object(error: Exception) -> bool:
    """Whether obstore says that there is no such object (and not: no such bucket)."""
    return isinstance(error, FileNotFoundError) and _NO_BUCKET not in str(error)


def _is_no(status: int) -> bool:
    return (400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT) or status in _REFUSED_STATUS


def reason(error: Exception) -> str:
    """The part of an obstore error that is for people: one line, without the server's document."""
    return str(error).partition("\n")[0].partition(": <")[0]
