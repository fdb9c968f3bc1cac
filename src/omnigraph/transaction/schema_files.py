"""Accepted schemas on the store: a text, and beside it the resolved form, which tells what every number means.

The numbers cannot be worked out from the text, so the file of the text ends with the resolved form once more, in a
comment. Either file makes up for what is lost in the other.
"""

from omnigraph.errors import FormatError, UnavailableError
from omnigraph.model import schema_document
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore

_ALGORITHM = "sha256:"
_COPY = b"\n// resolved: "


def store_schema(store: ObjectStore, text: str, schema: Schema) -> str:
    """Put an accepted schema, its text and its resolved form, before any commit names it.

    Args:
        store: of the graph.
        text: as it was written.
        schema: what it resolved to.

    Returns:
        The digest that commits name it by.
    """
    digest = schema_document.digest(schema)
    resolved = schema_document.to_bytes(schema)
    store.put(text_path(digest), text.encode() + _COPY + resolved)
    store.put(resolved_path(digest), resolved)
    return digest


def text_path(digest: str) -> str:
    """Where the text of a schema lies."""
    return paths.schema_text(digest.removeprefix(_ALGORITHM))


def resolved_path(digest: str) -> str:
    """Where its resolved form lies."""
    return paths.schema_resolved(digest.removeprefix(_ALGORITHM))


def read_text(store: ObjectStore, digest: str) -> str:
    """The text of a schema, as it was accepted.

    Raises:
        FormatError: it is not there, or damaged.
    """
    path = text_path(digest)
    body = _read(store, path)
    try:
        return (body.rpartition(_COPY)[0] if _COPY in body else body).decode()
    except UnicodeDecodeError as fault:
        where = paths.absolute(store, path)
        raise FormatError(f"the text of the schema {where} is damaged: {fault}", code="schema_damaged") from fault


def read_schema(store: ObjectStore, digest: str) -> Schema:
    """The schema that commits name by a digest; where its own file is damaged, from the copy beside its text.

    Raises:
        FormatError: neither can be read.
    """
    try:
        return read_resolved(store, digest)
    except FormatError as fault:
        try:
            return _checked(_read(store, text_path(digest)).rpartition(_COPY)[2], digest)
        except FormatError:
            raise fault from None


def read_resolved(store: ObjectStore, digest: str) -> Schema:
    """The schema in the file of its resolved form.

    Raises:
        FormatError: it is not there, or damaged.
    """
    return _checked(_read(store, resolved_path(digest)), digest)


def is_readable(store: ObjectStore, digest: str) -> bool:
    """True if either file tells the schema."""
    try:
        read_schema(store, digest)
    except (FormatError, UnavailableError):
        return False
    return True


def restore_schema(store: ObjectStore, path: str) -> None:
    """Put the file of a resolved form again, from the copy beside its text.

    Raises:
        FormatError: the copy cannot be read either.
    """
    digest = _ALGORITHM + path.removeprefix(paths.SCHEMAS).partition(".")[0]
    store.put(path, schema_document.to_bytes(read_schema(store, digest)))


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
