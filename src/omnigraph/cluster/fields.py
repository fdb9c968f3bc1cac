"""Typed access to the mappings of cluster.yaml; invalid values become diagnostics."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.yaml_document import Entries, Items, Place, Scalar, Value

INVALID = "invalid_cluster_yaml"
# Keys reserved for later releases, and keys of earlier ones.
_FUTURE = frozenset({"pipelines", "embeddings", "ui", "aliases", "bindings"})
_REMOVED = frozenset({"streaming", "streams"})


class Fields:
    """Mapping of cluster.yaml.

    Attributes:
        path: dotted location, like `graphs.knowledge`; empty for the whole file.
    """

    def __init__(self, value: Value | None, path: str, diagnostics: Diagnostics) -> None:
        self.path = path
        self._diagnostics = diagnostics
        self._entries = Entries({}, Place())
        if isinstance(value, Entries):
            self._entries = value
        elif value is not None and not (isinstance(value, Scalar) and value.value is None):
            self.wrong("", "must be a mapping", place=value.place)

    def __contains__(self, key: str) -> bool:
        return key in self._entries.values

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries.values)

    def at(self, key: str) -> str:
        """Return the path of a member."""
        return ".".join(part for part in (self.path, key) if part) or "cluster.yaml"

    def wrong(self, key: str, message: str, *, code: str = INVALID, place: Place | None = None) -> None:
        """Report that a member is invalid."""
        place = place or self._place(key)
        self._diagnostics.error(code, self.at(key), f"{message} (line {place.line}, column {place.column})")

    def only(self, known: AbstractSet[str]) -> None:
        """Report every key that is not known."""
        for key in self._entries.values:
            if key in known:
                continue
            place = self._entries.places[key]
            if key in _FUTURE:
                self.wrong(key, f"'{key}' is reserved for a later release", code="future_phase_field", place=place)
            elif key in _REMOVED:
                message = f"'{key}' was removed: streaming needs no declaration"
                self.wrong(key, message, code="removed_streaming_declaration", place=place)
            else:
                self.wrong(key, f"unknown key '{key}'; use {', '.join(sorted(known))}", place=place)

    def members(self, key: str) -> "Fields":
        """Return the mapping under a key; an empty one if it is missing."""
        return Fields(self._entries.values.get(key), self.at(key), self._diagnostics)

    def value(self, key: str) -> Value | None:
        """Return the raw value under a key."""
        return self._entries.values.get(key)

    def scalar(self, key: str) -> object:
        """Return the scalar under a key; None if it is missing."""
        found = self.value(key)
        if found is None or isinstance(found, Scalar):
            return None if found is None else found.value
        self.wrong(key, "must be a plain value", place=found.place)
        return None

    def text(self, key: str, *, required: bool = False) -> str | None:
        """Return the text under a key."""
        found = self.value(key)
        if found is None:
            if required:
                self.wrong(key, f"'{key}' is missing")
            return None
        if isinstance(found, Scalar) and isinstance(found.value, str) and found.value.strip():
            return found.value
        self.wrong(key, "must be a text that is not blank", place=found.place)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts under a key; empty if it is missing."""
        found = self.value(key)
        if found is None:
            return ()
        if not isinstance(found, Items):
            self.wrong(key, "must be a list", place=found.place)
            return ()
        texts = []
        for item in found.values:
            if isinstance(item, Scalar) and isinstance(item.value, str) and item.value.strip():
                texts.append(item.value)
            else:
                self.wrong(key, "must hold texts that are not blank", place=item.place)
        return tuple(texts)

    def _place(self, key: str) -> Place:
        return self._entries.places.get(key, self._entries.place)


def plain(value: Value | None) -> object:
    """Convert a value to plain JSON values, without positions."""
    match value:
        case None:
            return None
        case Scalar():
            return value.value
        case Items():
            return [plain(item) for item in value.values]
        case Entries():
            return {key: plain(item) for key, item in value.values.items()}
