"""Blobs that lie elsewhere: which places may be named, and how what is named there is taken in or read.

Nothing may be named unless a policy allows the place. Addresses are brought into one spelling before they are compared,
and what could mean another place than it seems to is refused: credentials, queries, fragments, steps upward.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, beyond_limit
from omnigraph.storage.blob_sources import source_at
from omnigraph.storage.blob_values import managed, reference
from omnigraph.storage.input_files import is_remote, local_path

_OBJECT_STORES = frozenset({"s3", "gs", "az"})
_EMBEDDED = frozenset({"file", "http", "https"})
# Written with a percent sign these would be steps upward, or other folders, to whoever decodes them later.
_HIDDEN = ("%2e", "%2f", "%5c", "%00", "%25")
_DENIED = "external_blob_ingress_default_deny"


class BlobScope(StrEnum):
    """Who may use an allowed place."""

    SERVER_SAFE = "server_safe"  # everybody, a server on behalf of its callers too
    EMBEDDED_ONLY = "embedded_only"  # only processes that open the graph themselves


@dataclass(frozen=True, slots=True)
class AllowedBase:
    """A place whose content may be named.

    Attributes:
        base: its address, with a slash at the end: `s3://bucket/prefix/`, or `file:///folder/`, `https://host/folder/`
            for processes that open the graph themselves.
        scope: who may use it.
    """

    base: str
    scope: BlobScope = BlobScope.EMBEDDED_ONLY

    def __post_init__(self) -> None:
        """Bring the address into its one spelling.

        Raises:
            InvalidRequestError: it is no place, or not one for that scope (`invalid_external_blob_base`).
        """
        try:
            scope = BlobScope(self.scope)
            base = _normal(self.base)
        except ValueError as wrong:
            raise _bad_base(self.base, str(wrong)) from None
        if not base.endswith("/"):
            raise _bad_base(self.base, "it must end with a slash")
        scheme = base.partition(":")[0]
        if scope is BlobScope.SERVER_SAFE and scheme in _EMBEDDED:
            raise _bad_base(self.base, f"{scheme}:// is never {BlobScope.SERVER_SAFE}")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "scope", scope)


@dataclass(frozen=True, slots=True)
class ExternalBlobPolicy:
    """Which places blobs may lie at that are not the graph's own. By default none.

    Attributes:
        allow: the places.
    """

    allow: tuple[AllowedBase, ...] = ()

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "ExternalBlobPolicy":
        """A policy as configurations write it down.

        Raises:
            InvalidRequestError: it has other members (`invalid_external_blob_policy`), or a base is no place.
        """
        entries = document.get("allow", [])
        if set(document) - {"allow"} or not isinstance(entries, Sequence) or isinstance(entries, str):
            raise _bad_policy("it has one member, `allow`, a list")
        allowed = []
        for entry in entries:
            if not isinstance(entry, Mapping) or set(entry) != {"base", "scope"}:
                raise _bad_policy("each of `allow` has a `base` and a `scope`")
            if entry["scope"] not in list(BlobScope):
                raise _bad_policy(f"a scope is one of {', '.join(BlobScope)}, not '{entry['scope']}'")
            allowed.append(AllowedBase(str(entry["base"]), BlobScope(entry["scope"])))
        return ExternalBlobPolicy(tuple(allowed))

    def to_document(self) -> dict[str, Any]:
        """The same as configurations write it down."""
        return {"allow": [{"base": base.base, "scope": base.scope.value} for base in self.allow]}

    def for_servers(self) -> "ExternalBlobPolicy":
        """What of it a server may use on behalf of its callers."""
        return replace(self, allow=tuple(base for base in self.allow if base.scope is BlobScope.SERVER_SAFE))

    def approved(self, uri: str) -> str:
        """An address in its one spelling.

        Raises:
            InvalidRequestError: it is not allowed.
            LimitError: it is too long.
        """
        size = len(uri.encode(errors="replace"))
        if size > limits.BLOB_URI_BYTES_MAX:
            raise beyond_limit("external Blob URI bytes", actual=size, limit=limits.BLOB_URI_BYTES_MAX)
        if not self.allow:
            raise _refused(uri, "no place is approved for blobs", code=_DENIED)
        try:
            found = _normal(uri)
        except ValueError as wrong:
            raise _refused(uri, str(wrong)) from None
        if found.endswith("/"):
            raise _refused(uri, "it names a folder")
        inside = [base for base in self.allow if found.startswith(base.base)]
        if not inside:
            raise _refused(uri, "it lies below no approved place")
        if not is_remote(found) and not any(_is_below(found, base.base) for base in inside):
            raise _refused(uri, "it leads out of its approved place")
        return found

    def lets_read(self, uri: str) -> bool:
        """Whether what lies at a stored address may be read."""
        try:
            return self.approved(uri) == uri
        except InvalidRequestError:
            return False


class BlobIngress:
    """How addresses in the input of one operation become cells."""

    def __init__(self, policy: ExternalBlobPolicy, *, keeps_references: bool = False) -> None:
        """Begin an operation.

        Args:
            keeps_references: whether blobs stay where they are; else their bytes are copied.
        """
        self._policy = policy
        self._keeps_references = keeps_references
        # By address: an operation that runs again sees the same, and reads nothing again.
        self._known: dict[str, bytes] = {}
        self._bytes = 0

    def another(self) -> "BlobIngress":
        """The same for another operation."""
        return BlobIngress(self._policy, keeps_references=self._keeps_references)

    def cells(self, uris: Sequence[str]) -> list[bytes]:
        """What the table holds for each address.

        Returns:
            As many cells. An address that this operation has met before gives the same one again.

        Raises:
            InvalidRequestError: one is not allowed; then nothing was read.
            BlobSourceError: one is, and cannot be read.
            LimitError: there are too many, or too many bytes.
        """
        approved = [self._policy.approved(uri) for uri in uris]
        if len(approved) > limits.BLOB_REFERENCES_MAX:
            most = limits.BLOB_REFERENCES_MAX
            raise beyond_limit("external Blob reference cells", actual=len(approved), limit=most)
        new = [uri for uri in dict.fromkeys(approved) if uri not in self._known]
        if new:
            with ThreadPoolExecutor(limits.BLOB_PROBES_AT_ONCE) as pool:
                sources = list(pool.map(source_at, new))
                if self._keeps_references:
                    self._known |= {uri: reference(uri) for uri in new}
                else:
                    self._count(sum(uri.size for uri in sources))
                    self._known |= zip(new, pool.map(lambda uri: managed(uri.whole()), sources), strict=True)
        return [self._known[uri] for uri in approved]

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > limits.BLOB_INPUT_BYTES_MAX:
            most = limits.BLOB_INPUT_BYTES_MAX
            raise beyond_limit("materialized blob payload bytes", actual=self._bytes, limit=most)


NO_EXTERNAL_BLOBS = ExternalBlobPolicy()


def _normal(uri: str) -> str:
    """An address in its one spelling.

    Raises:
        ValueError: it is none, or could mean something else than it seems to.
    """
    parts = urlsplit(uri)
    scheme, rest = parts.scheme.lower(), uri.partition(":")[2]
    if not scheme or not rest.startswith("//"):
        raise ValueError("it is no address with a scheme, like s3://bucket/key")
    if scheme not in _OBJECT_STORES | _EMBEDDED:
        raise ValueError(f"{scheme}:// is not a place blobs can lie at")
    if any(ord(character) <= ord(" ") or ord(character) == 0x7F or character == "\\" for character in uri):
        raise ValueError("it has blanks, control characters or backslashes")
    if "@" in parts.netloc:
        raise ValueError("it has credentials")
    if "?" in uri or "#" in uri:
        raise ValueError("it has a query or a fragment")
    if any(hidden in uri.lower() for hidden in _HIDDEN):
        raise ValueError("it hides characters that change its meaning")
    segments = parts.path.split("/")
    if ".." in segments or "." in segments or "" in segments[1:-1]:
        raise ValueError("it has steps up, or empty ones")
    host = "" if scheme == "file" and parts.netloc.lower() == "localhost" else parts.netloc.lower()
    if (scheme == "file") == bool(host):
        raise ValueError("it names no host" if not host else "it names a host")
    return f"{scheme}://{host}{parts.path or '/'}"


def _is_below(uri: str, base: str) -> bool:
    """Whether a file on this machine lies in its folder after links were followed."""
    folder = os.path.realpath(local_path(base))
    return os.path.realpath(local_path(uri)).startswith(os.path.join(folder, ""))  # noqa: PTH118  (text, not a path)


def _refused(uri: str, why: str, *, code: str = "external_blob_not_allowed") -> InvalidRequestError:
    return InvalidRequestError(f"external blob URI '{uri}' is not allowed: {why}", code=code, uri=uri, reason=why)


def _bad_base(base: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(f"'{base}' is no place for blobs: {why}", code="invalid_external_blob_base", base=base)


def _bad_policy(why: str) -> InvalidRequestError:
    return InvalidRequestError(f"no policy for blobs: {why}", code="invalid_external_blob_policy")
