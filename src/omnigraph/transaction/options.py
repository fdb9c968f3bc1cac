"""Write options: what a caller may say about any write, as one value or as keywords."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from omnigraph.errors import FormatError, InvalidRequestError
from omnigraph.transaction.validation import require_flag, require_optional_text, require_table_versions


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write. Every write of a graph takes them as `write=WriteOptions(...)` or as keywords.

    Attributes:
        actor: who writes. A served graph takes no actor: the bearer token decides.
        message: why, for the history.
        if_commit: write only if this is the head commit of the branch.
        expected_table_versions: write only if these tables are at these versions, by type key like `node:Person`; see
            `Snapshot.table_versions`.
        idempotency_key: a second write with the same key changes nothing and returns the first commit. Every write to a
            served graph carries one: a new one, unless it is named here.
        prune_previous: in the same commit, drop all earlier commits of the branch from history. Their data is deleted
            later, by a sweep after a prune that comes when the protection window has passed.
    """

    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    expected_table_versions: Mapping[str, int] | None = None
    idempotency_key: str | None = None
    prune_previous: bool = False

    def __post_init__(self) -> None:
        # Here, and not when it is published: hours of a load may lie between.
        require_optional_text(self.actor, "the actor")
        require_optional_text(self.message, "the message")
        if self.idempotency_key is not None and not isinstance(self.idempotency_key, str):
            raise InvalidRequestError(f"an idempotency key must be a text, got {type(self.idempotency_key).__name__}")
        require_table_versions(self.expected_table_versions)
        require_flag(self.prune_previous, "prune_previous")

    @property
    def drops_history(self) -> bool:
        """True if the write makes earlier commits unreadable."""
        return self.prune_previous

    def dropping_history(self) -> "WriteOptions":
        """These options, with earlier commits dropped from history."""
        return replace(self, prune_previous=True)


class WriteKeywords(TypedDict, total=False):
    """Keywords of every write: the options as one value, or one by one.

    Attributes:
        write: all options as one value; keywords beside it replace its fields.
        actor: who writes. A served graph takes no actor: the bearer token decides.
        message: why, for the history.
        if_commit: write only if this is the head commit of the branch.
        expected_table_versions: write only if these tables are at these versions, by type key like `node:Person`; see
            `Snapshot.table_versions`.
        idempotency_key: a second write with the same key changes nothing and returns the first commit. Every write to a
            served graph carries one: a new one, unless it is named here.
        prune_previous: in the same commit, drop all earlier commits of the branch from history. Their data is deleted
            later, by a sweep after a prune that comes when the protection window has passed.
    """

    write: WriteOptions
    actor: str | None
    message: str | None
    if_commit: str | None
    expected_table_versions: Mapping[str, int] | None
    idempotency_key: str | None
    prune_previous: bool


NO_OPTIONS = WriteOptions()
_NAMES = tuple(field.name for field in fields(WriteOptions))
# Options that an intent does not repeat: it names the actor itself.
_OUTSIDE_OF_DOCUMENTS = frozenset(("actor",))


def write_options(keywords: WriteKeywords, *, without: Collection[str] = ()) -> WriteOptions:
    """Bring the options of a write together, from one value and from keywords."""
    if not keywords:
        return NO_OPTIONS
    options = keywords.get("write", NO_OPTIONS)
    if not isinstance(options, WriteOptions):
        raise InvalidRequestError(f"write must be WriteOptions, got {type(options).__name__}")
    single = {name: value for name, value in keywords.items() if name != "write"}
    unknown = [name for name in single if name not in _NAMES]
    if unknown:
        raise TypeError(f"a write got an unexpected keyword argument '{unknown[0]}'")
    options = replace(options, **single)  # type: ignore[arg-type]  # the names are those of the fields
    for name in without:
        if getattr(options, name) != getattr(NO_OPTIONS, name):
            raise InvalidRequestError(f"this write does not support {name}")
    return options


def option_values(options: WriteOptions) -> dict[str, Any]:
    """Return the options by name, of a value that may have other fields too."""
    return {name: getattr(options, name) for name in _NAMES}


def options_document(options: WriteOptions) -> dict[str, Any]:
    """Return the options for the record of a write in progress."""
    document = {name: value for name, value in option_values(options).items() if name not in _OUTSIDE_OF_DOCUMENTS}
    return document | {"expected_table_versions": dict(options.expected_table_versions or {})}


def read_options(document: Mapping[str, Any]) -> WriteOptions:
    """Return the options in the record of an interrupted write; fields of other releases are left out."""
    given = {name: value for name, value in document.items() if name in _NAMES and name not in _OUTSIDE_OF_DOCUMENTS}
    try:
        return WriteOptions(**given)
    except InvalidRequestError as refused:
        raise FormatError(f"the record of an interrupted write is damaged: {refused}") from refused
