"""Compute embeddings for the records of a file: `omnigraph embed`.

Records are JSON lines; the output has them in the same order, and unchanged where nothing is embedded.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from omnigraph.embedding.provider import Provider, Purpose
from omnigraph.errors import InvalidRequestError

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


class EmbedMode(StrEnum):
    """Which records get an embedding, or lose it."""

    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbeddedType:
    """The property of a type that takes the embedding, and the fields whose text is embedded."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """What to embed of each type, and the dimension of the vectors."""

    dimension: int
    types: Mapping[str, EmbeddedType]


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of records by the value of a field, and by type unless that is None."""

    type_name: str | None
    field: str
    value: str

    def matches(self, type_name: str, data: Mapping[str, Any]) -> bool:
        """True if the record has the type and the value."""
        if self.type_name is not None and self.type_name != type_name:
            return False
        value = data.get(self.field)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return self.field in data and text == self.value


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """The numbers of records that were read, selected, embedded and cleaned."""

    input: str
    output: str
    records: int
    selected_records: int
    embedded_records: int
    cleaned_records: int
    mode: EmbedMode
    dimension: int
    model: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        return {name: getattr(self, name) for name in self.__slots__} | {"mode": self.mode.value}

    def __str__(self) -> str:
        return (
            f"embedded {self.embedded_records} records (selected {self.selected_records}, cleaned "
            f"{self.cleaned_records}) from {self.input} -> {self.output} [{self.mode} {self.dimension}d]"
        )


def read_spec(document: Any, *, where: str) -> EmbedSpec:  # noqa: ANN401  (any JSON or YAML)
    """Read a specification of embeddings.

    Raises:
        InvalidRequestError: it is malformed.
    """
    try:
        dimension = document["dimension"]
        types = {
            str(name): EmbeddedType(str(member["target"]), tuple(str(field) for field in member["fields"]))
            for name, member in document["types"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidRequestError(
            f'{where} is not a specification of embeddings: {error}; write {{"dimension": 384, "types": '
            '{"Doc": {"target": "vector", "fields": ["title", "body"]}}}'
        ) from None
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise InvalidRequestError(f"the dimension in {where} must be a whole number above zero, not {dimension!r}")
    not_lists = [name for name, member in document["types"].items() if isinstance(member["fields"], str)]
    if not_lists:
        raise InvalidRequestError(
            f"the fields of the type '{not_lists[0]}' in {where} must be a list, like [\"title\"]"
        )
    empty = [name for name, member in types.items() if not member.fields]
    if empty:
        raise InvalidRequestError(f"the type '{empty[0]}' in {where} names no fields")
    return EmbedSpec(dimension, types)


def read_selection(text: str) -> Selection:
    """Parse `Type:field=value` or `field=value`.

    Raises:
        InvalidRequestError: it has another form.
    """
    left, equals, value = text.partition("=")
    type_name, colon, field = left.rpartition(":")
    if not equals or not field or (colon and not type_name):
        raise InvalidRequestError(f"--select takes TYPE:FIELD=VALUE or FIELD=VALUE, not '{text}'")
    return Selection(type_name or None, field, value)


def embed_file(
    source: Path,
    target: Path,
    spec: EmbedSpec,
    provider: Callable[[], Provider],
    *,
    mode: EmbedMode,
    types: Sequence[str] = (),
    selections: Sequence[Selection] = (),
) -> EmbedReport:
    """Embed the records of a file into another file, which appears only when it is complete.

    Args:
        source: the input, as JSON lines.
        target: the output.
        spec: the properties to embed, and the dimension.
        provider: makes the provider; not called if nothing is embedded.
        mode: which records get an embedding.
        types: only records of these types; all types of the specification by default.
        selections: only records that match one of these; all by default.

    Raises:
        InvalidRequestError: a line is not a record, or a file cannot be read or written.
        UnavailableError: the provider does not answer.
    """
    unknown = sorted(set(types) - set(spec.types))
    if unknown:
        raise InvalidRequestError(f"the specification has no type '{unknown[0]}'; it has {', '.join(spec.types)}")
    embedder = _Embedder(spec, provider, mode, frozenset(types or spec.types), tuple(selections))
    if not target.name:
        raise InvalidRequestError(f"cannot embed {source} into {target}: not a file name")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as lines, unfinished.open("wb") as out:
            for number, line in enumerate(lines, 1):
                out.write(embedder.embed_line(line, f"line {number} of {source}"))
        unfinished.replace(target)
    except OSError as error:
        raise InvalidRequestError(f"cannot embed {source} into {target}: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return EmbedReport(
        str(source),
        str(target),
        embedder.records,
        embedder.selected,
        embedder.embedded,
        embedder.cleaned,
        mode,
        spec.dimension,
        embedder.model,
    )


class _Embedder:
    def __init__(
        self,
        spec: EmbedSpec,
        provider: Callable[[], Provider],
        mode: EmbedMode,
        types: frozenset[str],
        selections: tuple[Selection, ...],
    ) -> None:
        self._spec = spec
        self._make_provider = provider
        self._provider: Provider | None = None
        self._mode = mode
        self._types = types
        self._selections = selections
        self.records = self.selected = self.embedded = self.cleaned = 0

    @property
    def model(self) -> str | None:
        return None if self._provider is None else self._provider.model

    def embed_line(self, line: bytes, where: str) -> bytes:
        """Return the line of the output for a line of the input."""
        if not line.strip():
            return line
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InvalidRequestError(f"{where} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise InvalidRequestError(f"{where} is not a record")
        self.records += 1
        changed = self._embed_record(record, where)
        return line if not changed else json.dumps(record, ensure_ascii=False).encode() + b"\n"

    def _embed_record(self, record: dict[str, Any], where: str) -> bool:
        type_name, data = record.get("type"), record.get("data")
        if not isinstance(type_name, str) or type_name not in self._types:
            return False
        if not isinstance(data, dict):
            raise InvalidRequestError(f"{where} has no data")
        if self._selections and not any(selection.matches(type_name, data) for selection in self._selections):
            return False
        self.selected += 1
        embedded_type = self._spec.types[type_name]
        if self._mode is EmbedMode.CLEAN:
            had = data.pop(embedded_type.target, None) is not None
            self.cleaned += had
            return had
        if self._mode is EmbedMode.FILL_MISSING and data.get(embedded_type.target) is not None:
            return False
        if self._provider is None:
            self._provider = self._make_provider()
        text = "\n".join(_text_lines(type_name, embedded_type.fields, data))
        vector = self._provider.embed(text, self._spec.dimension, Purpose.DOCUMENT)
        data[embedded_type.target] = [float(number) for number in vector]
        self.embedded += 1
        return True


def _text_lines(type_name: str, fields: Sequence[str], data: Mapping[str, Any]) -> Iterator[str]:
    """Return the text to embed of a record: its type, then the fields it has."""
    yield f"type: {type_name}"
    for field in fields:
        value = data.get(field)
        if value is not None:
            yield f"{field}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
