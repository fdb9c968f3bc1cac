"""Which files a load reads: one, many, a folder, a pattern, or an address in an object store; and in which form."""

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from urllib.parse import unquote

from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.storage.input_files import is_remote, local_path, remote_files, remote_size, storage_options_for

# The code of what is wrong with the words of a load, not with its records: such messages say what to do.
OPTION = "load_option"

Data = "str | os.PathLike[str] | bytes | BinaryIO | Sequence[str | os.PathLike[str]]"


class Format(StrEnum):
    """What is in a file."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


class Packing(StrEnum):
    """How its bytes are packed."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


_FORMATS = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_PACKINGS = {".gz": Packing.GZIP, ".gzip": Packing.GZIP, ".zst": Packing.ZSTD, ".zstd": Packing.ZSTD}


@dataclass(frozen=True, slots=True)
class Partition:
    """A column that the folder of a file names, like `age=3`, with the one value it has there.

    Attributes:
        name: of the column.
        text: the value, as in CSV; None for null.
        is_found: whether the folder was found below the one that the caller names.
    """

    name: str
    text: str | None
    is_found: bool


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a load.

    Attributes:
        index: its number among them.
        name: what messages call it.
        uri: a path or an address; empty where the bytes are here.
        size: how many bytes it has, packed as it is.
        format: what is in it.
        packing: how it is packed.
        body: the bytes themselves, where they came without a file.
        strict: one JSON object per line and nothing else; otherwise a stream of JSON values.
        storage_options: how to reach an address, for workers whose environment does not say; keys may be among them.
        partitions: the columns that its folders name.
        is_frame: it is a partition of a Spark frame; positions of records are their numbers.
    """

    index: int
    name: str
    uri: str
    size: int
    format: Format
    packing: Packing = Packing.NONE
    body: bytes | None = None
    strict: bool = True
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    partitions: tuple[Partition, ...] = ()
    is_frame: bool = False

    @property
    def named(self) -> bool:
        """Whether there is a file to name."""
        return self.body is None

    @property
    def is_json(self) -> bool:
        """Whether records name their types themselves."""
        return self.format is Format.JSONL

    @property
    def is_lines(self) -> bool:
        """Whether every record is a line."""
        return self.is_json and self.strict

    @property
    def can_be_split(self) -> bool:
        """Whether parts of it can be read by themselves."""
        return self.is_lines and self.packing is Packing.NONE and self.body is None


def sources_of(data: object, *, format: str | None, strict: bool) -> tuple[Source, ...]:
    """The files that a caller means, in the order they are read.

    Args:
        data: a path, folder, pattern or address, several of them, the bytes themselves, or an open file; or
            sources, of somebody who wrote the files.
        format: what is in them; by their names' endings by default.
        strict: whether JSON comes one object per line.

    Returns:
        tuple[Source, ...]: at least one.

    Raises:
        NotFoundError: there is no such file.
        InvalidRequestError: what is in a file cannot be told, or nobody can read it.
    """
    chosen = _chosen(format)
    if isinstance(data, bytes | bytearray | memoryview):
        return (_held(bytes(data), chosen, strict=strict),)
    if hasattr(data, "read"):
        return (_held(_all_of(cast(BinaryIO, data)), chosen, strict=strict),)
    named = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(named, Sequence):
        raise InvalidRequestError(f"a load reads files or bytes, got {type(data).__name__}", code=OPTION)
    if not named:
        raise InvalidRequestError("there is nothing to load: no file is named", code=OPTION)
    sources = tuple(item for item in named if isinstance(item, Source))
    if len(sources) == len(named):
        return sources
    for item in named:
        if not isinstance(item, str | os.PathLike):
            raise InvalidRequestError(f"a load reads files, and {item!r} is no path", code=OPTION)
    found = [(*item, _path(one)) for one in named for item in _files(_path(one), chosen)]
    times = Counter(name for name, *_ in found)
    return tuple(
        # Files of one name in several folders are told apart by their whole paths.
        Source(
            number,
            name if times[name] == 1 else uri,
            uri,
            size,
            *_form(name, chosen),
            strict=strict,
            storage_options=storage_options_for(uri),
            partitions=_partitions(uri, where),
        )
        for number, (name, uri, size, where) in enumerate(found)
    )


def _partitions(uri: str, where: str) -> tuple[Partition, ...]:
    """The columns that the folders of a file name; those from a pattern's first wildcard on count as found."""
    given = where.rstrip("/").split("/")
    plain = next((number for number, segment in enumerate(given) if glob.has_magic(segment)), len(given))
    # What was given may be relative, so found folders are counted from the end of what is absolute.
    root = where if is_remote(where) else str(Path(local_path("/".join(given[:plain]) or "/")).expanduser().absolute())
    given_depth = len([segment for segment in root.split("/")[: plain if is_remote(where) else None] if segment])
    segments = [segment for segment in uri.split("/") if segment]
    return tuple(
        Partition(name, None if text == _NULL_PARTITION else unquote(text), is_found=number >= given_depth)
        for number, (name, equals, text) in enumerate(segment.partition("=") for segment in segments[:-1])
        if name and equals
    )


def _chosen(format: str | None) -> Format | None:
    if format is None:
        return None
    text = str(format).lower()
    try:
        return Format({"ndjson": "jsonl", "json": "jsonl"}.get(text, text))
    except ValueError:
        raise InvalidRequestError(f"unknown format '{format}'; one of {', '.join(Format)}", code=OPTION) from None


def _held(body: bytes, chosen: Format | None, *, strict: bool) -> Source:
    return Source(0, "the data given", "", len(body), chosen or Format.JSONL, body=body, strict=strict)


def _all_of(file: BinaryIO) -> bytes:
    body = file.read()
    return body.encode() if isinstance(body, str) else body


def _path(given: "str | os.PathLike[str]") -> str:
    text = os.fspath(given)
    if not text or "\0" in text:
        raise InvalidRequestError(f"{text!r} is the path of no file", code=OPTION)
    return text


def _files(where: str, chosen: Format | None) -> Iterator[tuple[str, str, int]]:
    if is_remote(where):
        folder = where.endswith("/")
        if not folder and not glob.has_magic(where):
            size = remote_size(where)
            if size is not None:
                yield PurePosixPath(where).name, where, size
                return
        yield from _some(where, [item for item in remote_files(where) if _is_input(item[0], chosen)], is_folder=folder)
        return
    path = Path(local_path(where)).expanduser()
    try:
        if path.is_file():
            yield path.name, str(path.absolute()), path.stat().st_size
            return
        is_folder = path.is_dir()
        below = [item for item in sorted(_below(path, is_folder=is_folder)) if item.is_file()]
    except OSError as fault:
        raise InvalidRequestError(f"{where} cannot be read: {fault.strerror}", code=OPTION) from fault
    found = [item for item in below if _is_input(str(item.relative_to(path) if is_folder else item.name), chosen)]
    yield from _some(
        where, [(item.name, str(item.absolute()), item.stat().st_size) for item in found], is_folder=is_folder
    )


def _below(path: Path, *, is_folder: bool) -> Iterator[Path]:
    if is_folder:
        return path.rglob("*")
    return map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207  (any path)


def _some(where: str, found: list[tuple[str, str, int]], *, is_folder: bool) -> list[tuple[str, str, int]]:
    if found:
        return found
    if is_folder:
        why = "no file in the folder has a name that ends like JSON lines, CSV or Parquet; name the format"
    elif glob.has_magic(where):
        why = "no file fits the pattern; a folder's files are found by its own name, too"
    else:
        why = "there is no such file or folder"
    raise NotFoundError(f"no file to load at {where}: {why}", code="data_not_found", path=where)


def _is_input(name: str, chosen: Format | None) -> bool:
    """Whether a file found in a folder is meant: hidden ones, and what other programs leave beside theirs, are not."""
    if any(part.startswith((".", "_")) for part in PurePosixPath(name).parts):
        return False
    return chosen is not None or _by_ending(name)[0] is not None


def _by_ending(name: str) -> tuple[Format | None, Packing]:
    path = PurePosixPath(name.lower())
    packing = _PACKINGS.get(path.suffix, Packing.NONE)
    if packing is not Packing.NONE:
        path = path.with_suffix("")
    return _FORMATS.get(path.suffix), packing


def _form(name: str, chosen: Format | None) -> tuple[Format, Packing]:
    found, packing = _by_ending(name)
    form = chosen or found
    if form is None:
        raise InvalidRequestError(
            f"what is in {name} cannot be told by its name: say the format, one of {', '.join(Format)}", code=OPTION
        )
    return form, packing
