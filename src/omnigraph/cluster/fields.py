"""Values of cluster.yaml, taken out one by one: what is not understood is said, and the rest read all the same."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.yaml_document import Entries, Items, Place, Scalar, Value

INVALID = "invalid_cluster_yaml"
# Words that later releases may give a meaning, and words that had one once.
_FUTURE = frozenset({"pipelines", "embeddings", "ui", "aliases", "bindings"})
_REMOVED = frozenset({"streaming", "streams"})


class Fields:
    """One mapping of the file.

    Attributes:
        path: of the mapping, like `graphs.knowledge`; empty for the whole file.
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
        """The path of a member."""
        return ".".join(part for part in (self.path, key) if part) or "cluster.yaml"

    def wrong(self, key: str, message: str, *, code: str = INVALID, place: Place | None = None) -> None:
        """Say that a member is wrong."""
        place = place or self._place(key)
        self._diagnostics.error(code, self.at(key), f"{message} (line {place.line}, column {place.column})")

    def only(self, known: AbstractSet[str]) -> None:
        """Refuse every key but these."""
        for key in self._entries.values:
            if key in known:
                continue
            place = self._entries.places[key]
            if key in _FUTURE:
                self.wrong(key, f"'{key}' has no meaning yet in this release", code="future_phase_field", place=place)
            elif key in _REMOVED:
                message = f"'{key}' is declared no more: graphs are streamed into without it"
                self.wrong(key, message, code="removed_streaming_declaration", place=place)
            else:
                self.wrong(key, f"unknown key '{key}'; there are {', '.join(sorted(known))}", place=place)

    def members(self, key: str) -> "Fields":
        """The mapping under a key; empty where there is none."""
        return Fields(self._entries.values.get(key), self.at(key), self._diagnostics)

    def value(self, key: str) -> Value | None:
        """The value under a key, whatever it is."""
        return self._entries.values.get(key)

    def scalar(self, key: str) -> object:
        """The plain value under a key; None where there is none."""
        found = self.value(key)
        if found is None or isinstance(found, Scalar):
            return None if found is None else found.value
        self.wrong(key, "must be a plain value", place=found.place)
        return None

    def text(self, key: str, *, required: bool = False) -> str | None:
        """The text under a key."""
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
        """The list of texts under a key; empty where there is none."""
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
    """A value without its places, as JSON would have it."""
    match value:
        case None:
            return None
        case Scalar():
            return value.value
        case Items():
            return [plain(item) for item in value.values]
        case Entries():
            return {key: plain(item) for key, item in value.values.items()}
