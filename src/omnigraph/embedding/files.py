"""Vectors into files of records: `omnigraph embed`.

Records come one JSON object per line and leave so, in the same order; what is not to be embedded leaves as it came.
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
    """Which records get a vector, or lose one."""

    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbeddedType:
    """What to embed of one type: the property that takes the vector, and those its text is made of."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    """What to embed.

    Attributes:
        dimension: of the vectors.
        types: by type.
    """

    dimension: int
    types: Mapping[str, EmbeddedType]


@dataclass(frozen=True, slots=True)
class Selection:
    """Records to take: with this value of a field, of this type where one is named."""

    type_name: str | None
    field: str
    value: str

    def takes(self, type_name: str, data: Mapping[str, Any]) -> bool:
        """Whether a record is meant."""
        if self.type_name is not None and self.type_name != type_name:
            return False
        found = data.get(self.field)
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return self.field in data and text == self.value


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What was done."""

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
        """As a JSON document."""
        return {name: getattr(self, name) for name in self.__slots__} | {"mode": self.mode.value}

    def __str__(self) -> str:
        return (
            f"embedded {self.embedded_records} records (selected {self.selected_records}, cleaned "
            f"{self.cleaned_records}) from {self.input} -> {self.output} [{self.mode} {self.dimension}d]"
        )


def read_spec(document: Any, *, where: str) -> EmbedSpec:  # noqa: ANN401  (whatever JSON or YAML says)
    """What a specification says.

    Raises:
        InvalidRequestError: it is none.
    """
    try:
        dimension = document["dimension"]
        types = {
            str(name): EmbeddedType(str(each["target"]), tuple(str(field) for field in each["fields"]))
            for name, each in document["types"].items()
        }
    except (KeyError, TypeError, AttributeError) as missing:
        raise InvalidRequestError(
            f'{where} is no specification of embeddings: {missing}; it looks like {{"dimension": 384, "types": '
            '{"Doc": {"target": "vector", "fields": ["title", "body"]}}}'
        ) from None
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise InvalidRequestError(f"the dimension in {where} must be a whole number above zero, not {dimension!r}")
    spelled = [name for name, each in document["types"].items() if isinstance(each["fields"], str)]
    if spelled:
        raise InvalidRequestError(f"the fields of the type '{spelled[0]}' in {where} must be a list, like [\"title\"]")
    empty = [name for name, each in types.items() if not each.fields]
    if empty:
        raise InvalidRequestError(f"the type '{empty[0]}' in {where} names no fields")
    return EmbedSpec(dimension, types)


def read_selection(text: str) -> Selection:
    """`Type:field=value`, or `field=value`.

    Raises:
        InvalidRequestError: it is neither.
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
    """Embed a file of records into another, which appears when it is whole.

    Args:
        source: the records.
        target: where they go.
        spec: what to embed.
        provider: makes the provider; not called when nothing is to be embedded.
        mode: which records.
        types: only of these types; all of the specification by default.
        selections: only records that one of these takes; all by default.

    Raises:
        InvalidRequestError: a line is no record, or a file cannot be read or written.
        UnavailableError: the provider does not answer.
    """
    unknown = sorted(set(types) - set(spec.types))
    if unknown:
        raise InvalidRequestError(f"the specification has no type '{unknown[0]}'; it has {', '.join(spec.types)}")
    work = _Work(spec, provider, mode, frozenset(types or spec.types), tuple(selections))
    if not target.name:
        raise InvalidRequestError(f"cannot embed {source} into {target}: that is the name of no file")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as lines, unfinished.open("wb") as out:
            for number, line in enumerate(lines, 1):
                out.write(work.line(line, f"line {number} of {source}"))
        unfinished.replace(target)
    except OSError as fault:
        raise InvalidRequestError(f"cannot embed {source} into {target}: {fault}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return EmbedReport(
        str(source),
        str(target),
        work.records,
        work.selected,
        work.embedded,
        work.cleaned,
        mode,
        spec.dimension,
        work.model,
    )


class _Work:
    def __init__(
        self,
        spec: EmbedSpec,
        provider: Callable[[], Provider],
        mode: EmbedMode,
        types: frozenset[str],
        selections: tuple[Selection, ...],
    ) -> None:
        self._spec = spec
        self._make = provider
        self._made: Provider | None = None
        self._mode = mode
        self._types = types
        self._selections = selections
        self.records = self.selected = self.embedded = self.cleaned = 0

    @property
    def model(self) -> str | None:
        return None if self._made is None else self._made.model

    def line(self, line: bytes, where: str) -> bytes:
        """A line as it leaves."""
        if not line.strip():
            return line
        try:
            record = json.loads(line)
        except ValueError as fault:
            raise InvalidRequestError(f"{where} is not JSON: {fault}") from None
        if not isinstance(record, dict):
            raise InvalidRequestError(f"{where} is no record")
        self.records += 1
        changed = self._embedded(record, where)
        return line if not changed else json.dumps(record, ensure_ascii=False).encode() + b"\n"

    def _embedded(self, record: dict[str, Any], where: str) -> bool:
        type_name, data = record.get("type"), record.get("data")
        if not isinstance(type_name, str) or type_name not in self._types:
            return False
        if not isinstance(data, dict):
            raise InvalidRequestError(f"{where} has no data")
        if self._selections and not any(each.takes(type_name, data) for each in self._selections):
            return False
        self.selected += 1
        wanted = self._spec.types[type_name]
        if self._mode is EmbedMode.CLEAN:
            had = data.pop(wanted.target, None) is not None
            self.cleaned += had
            return had
        if self._mode is EmbedMode.FILL_MISSING and data.get(wanted.target) is not None:
            return False
        if self._made is None:
            self._made = self._make()
        text = "\n".join(_text_lines(type_name, wanted.fields, data))
        vector = self._made.embed(text, self._spec.dimension, Purpose.DOCUMENT)
        data[wanted.target] = [float(each) for each in vector]
        self.embedded += 1
        return True


def _text_lines(type_name: str, fields: Sequence[str], data: Mapping[str, Any]) -> Iterator[str]:
    """What is embedded of a record: its type, then the fields it has."""
    yield f"type: {type_name}"
    for field in fields:
        value = data.get(field)
        if value is not None:
            yield f"{field}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
