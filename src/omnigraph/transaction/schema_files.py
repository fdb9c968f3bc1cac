"""Accepted schemas on the store: a text, and beside it the resolved form, which tells what every number means.

The numbers cannot be worked out from the text, so the file of the text ends with the resolved form once more, in a
comment. Either file makes up for what is lost in the other. Before the copy stands a checksum of the text: a flipped
bit in a name or a comment would pass as another text.
"""

import re
from collections.abc import Callable
from hashlib import sha256

from omnigraph.errors import FormatError, UnavailableError
from omnigraph.model import schema_document
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore

_ALGORITHM = "sha256:"
_COPY = b"\n// resolved: "
_SUM = b"\n// sha256: "
_SUM_BYTES = len(_SUM) + 64
_HEX = re.compile(rb"[0-9a-f]{64}\Z")


def store_schema(store: ObjectStore, text: str, schema: Schema) -> str:
    """Put an accepted schema, its text and its resolved form, before any commit names it."""
    digest = schema_document.digest(schema)
    resolved = schema_document.to_bytes(schema)
    store.put(text_path(digest), _text_file(text, resolved))
    store.put(resolved_path(digest), resolved)
    return digest


def text_path(digest: str) -> str:
    """Where the text of a schema lies."""
    return paths.schema_text(digest.removeprefix(_ALGORITHM))


def resolved_path(digest: str) -> str:
    """Where its resolved form lies."""
    return paths.schema_resolved(digest.removeprefix(_ALGORITHM))


def read_text(store: ObjectStore, digest: str) -> str:
    """The text of a schema, as it was accepted."""
    path = text_path(digest)
    body = _read(store, path)
    try:
        return _text_in(body).decode()
    except ValueError as fault:
        where = paths.absolute(store, path)
        raise FormatError(f"the text of the schema {where} is damaged: {fault}", code="schema_damaged") from fault


def read_schema(store: ObjectStore, digest: str) -> Schema:
    """The schema that commits name by a digest; where its own file is damaged, from the copy beside its text."""
    try:
        return read_resolved(store, digest)
    except FormatError as fault:
        try:
            return _checked(_read(store, text_path(digest)).rpartition(_COPY)[2], digest)
        except FormatError:
            raise fault from None


def read_resolved(store: ObjectStore, digest: str) -> Schema:
    """The schema in the file of its resolved form."""
    return _checked(_read(store, resolved_path(digest)), digest)


def is_readable(store: ObjectStore, digest: str) -> bool:
    """True if either file tells the schema."""
    try:
        read_schema(store, digest)
    except (FormatError, UnavailableError):
        return False
    return True


def check_copy(store: ObjectStore, digest: str) -> None:
    """Check the copy of the resolved form beside the text; files of older releases have none."""
    body = _read(store, text_path(digest))
    if _COPY not in body:
        return
    copy = body.rpartition(_COPY)[2]
    if copy != schema_document.to_bytes(_checked(copy, digest)) and copy != _read(store, resolved_path(digest)):
        raise FormatError("the copy of the resolved form is not what was written", code="schema_damaged")


def restore_text(store: ObjectStore, path: str, render: Callable[[Schema], str]) -> None:
    """Put the file of a text again: the same text where that can be read, else one that `render` makes."""
    digest = _digest_of(path)
    schema = read_schema(store, digest)
    try:
        text = read_text(store, digest)
    except FormatError:
        text = render(schema)
    store.put(path, _text_file(text, schema_document.to_bytes(schema)))


def restore_schema(store: ObjectStore, path: str) -> None:
    """Put the file of a resolved form again, from the copy beside its text."""
    store.put(path, schema_document.to_bytes(read_schema(store, _digest_of(path))))


def _digest_of(path: str) -> str:
    return _ALGORITHM + path.removeprefix(paths.SCHEMAS).partition(".")[0]


def _text_file(text: str, resolved: bytes) -> bytes:
    body = text.encode()
    return body + _sum(body) + _COPY + resolved


def _text_in(body: bytes) -> bytes:
    """The text in its file; files of older releases have no checksum, or no copy of the resolved form either."""
    text, copy, _ = body.rpartition(_COPY)
    if not copy and _SUM not in body:
        return body
    whole, noted = text[:-_SUM_BYTES], text[-_SUM_BYTES:]
    if copy and not noted.startswith(_SUM) and not _HEX.search(noted):
        return text
    if noted != _sum(whole):
        raise ValueError("its checksum differs")
    return whole


def _sum(text: bytes) -> bytes:
    return _SUM + sha256(text).hexdigest().encode()


def _checked(body: bytes, digest: str) -> Schema:
    schema = schema_document.from_bytes(body)
    if schema_document.digest(schema) != digest:
        raise FormatError(f"the schema stored as {digest} is another one; the graph is damaged", code="schema_damaged")
    return schema


def _read(store: ObjectStore, path: str) -> bytes:
    try:
        return store.get(path)
    except ObjectNotFound:
        where = paths.absolute(store, path)
        raise FormatError(f"a schema that a commit names is not there: {where}", code="schema_missing") from None
