"""Text index files beside the graph, so that a new process need not tokenize all texts.

    size of the header, header, compressed arrays

The header names the fragments and the analyzer of the index, and the sizes and checksum of the arrays. On any mismatch
the file is ignored and the index is built from the texts instead.
"""

import contextlib
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values
from omnigraph.execution.id_index import build_id_index
from omnigraph.execution.numbering import Numbering
from omnigraph.execution.search.text_index import Segment, TextIndex
from omnigraph.execution.search.tokenizer import REVISIONS
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin
from omnigraph.storage.derived import WORDS, is_of_another_release, sealed, unsealed, words_file, words_of
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError

# 3: the header names the analyzer.
_FORMAT = 3
_FILES_TRIED_MAX = 2
_CODEC: Final = "zstd"
_SIZE = struct.Struct("<Q")
_NUMBER = np.dtype("<i4")

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A text column by its number, and its analyzer."""

    number: int
    analyzer: Analyzer

    @property
    def name(self) -> str:
        """Name of its file: another analyzer has another file."""
        return f"{self.number}-{self.analyzer}-{REVISIONS[self.analyzer]}"


class TextIndexFiles:
    """Text index files of one graph."""

    def __init__(self, store: ObjectStore, *, read_only: bool) -> None:
        self._store = store
        self._read_only = read_only
        # Number of texts covered by the file written or read last, by table and column.
        self._covered: dict[tuple[str, IndexedColumn], int] = {}

    def has(self, pin: Pin, column: IndexedColumn, numbering: Numbering) -> bool:
        """Return whether there is a file of this very version."""
        if numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        return words_file(pin.table, pin.version, column.name) in self._paths(pin, column)

    def is_due(self, pin: Pin, column: IndexedColumn, numbering: Numbering, *, is_new: bool) -> bool:
        """Return whether maintenance should write a file of this version.

        Args:
            pin: the version.
            column: the text column.
            numbering: of the version's rows.
            is_new: whether maintenance has just made the version: files of others may be useless to it.

        Returns:
            False for few texts, and for a version that has a file.
        """
        if self._read_only or numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        found = list(self._paths(pin, column))
        return words_file(pin.table, pin.version, column.name) not in found and (is_new or not found)

    def load(self, pin: Pin, column: IndexedColumn, numbering: Numbering) -> TextIndex | None:
        """Read the index of a version, or of its first rows; None where no file is usable."""
        if numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return None  # building it is faster than a request
        for path in self._paths(pin, column):
            found = self._read(path)
            if found is not None and found.analyzer is column.analyzer and found.is_prefix_of(numbering) and found.size:
                self._covered[pin.table, column] = found.size
                return found
        return None

    def keep(self, pin: Pin, column: IndexedColumn, index: TextIndex, *, is_rebuilt: bool) -> bool:
        """Write an index for other processes, if it is large and covers enough that no file covers yet.

        Args:
            pin: the version it was built for.
            column: the text column.
            index: over its texts.
            is_rebuilt: whether it was built from scratch: rows have other ordinals than in any file.

        Returns:
            Whether it was written; a failed write is not an error.
        """
        covered = 0 if is_rebuilt else self._covered.get((pin.table, column), 0)
        if self._read_only or index.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        if abs(index.size - covered) <= covered * limits.WORDS_STALE_SHARE:
            return False
        try:
            self._store.put(words_file(pin.table, pin.version, column.name), serialize(index))
        except StoreError:
            return False
        self._covered[pin.table, column] = index.size
        return True

    def find_damaged(self) -> Iterator[str]:
        """Yield the paths of damaged files, which readers ignore."""
        for listed in list(self._store.list(WORDS)):
            if self._read(listed.path) is None:
                with contextlib.suppress(ObjectNotFound):  # swept concurrently
                    if not is_of_another_release(_header_of(self._store.get(listed.path)), _FORMAT):
                        yield listed.path

    def _paths(self, pin: Pin, column: IndexedColumn) -> Iterator[str]:
        """Yield the file of this version, then a few of others, most recently written first."""
        own = words_file(pin.table, pin.version, column.name)
        try:
            listed = list(self._store.list(words_of(pin.table)))
        except StoreError:
            return
        files = [file for file in listed if file.path.endswith(f"/{column.name}")]
        files.sort(key=lambda file: (file.path == own, file.modified_us), reverse=True)
        yield from (file.path for file in files[:_FILES_TRIED_MAX])

    def _read(self, path: str) -> TextIndex | None:
        try:
            return deserialize(self._store.get(path))
        except (
            StoreError,
            OSError,
            MemoryError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            struct.error,
        ):
            return None


def serialize(index: TextIndex) -> bytes:
    """Serialize an index."""
    arrays: list[bytes] = [_bytes(index.lengths), np.packbits(index.has_text).tobytes()]
    for segment in index.segments:
        offsets, letters = _encode_words(segment.words)
        arrays += [
            _bytes(offsets),
            letters,
            # Differences are small numbers, which compress well.
            _bytes(np.diff(segment.posting_starts)),
            _bytes(segment.postings),
            _bytes(np.diff(segment.position_starts)),
            _bytes(segment.positions),
        ]
    body = b"".join(arrays)
    header = {
        "format": _FORMAT,
        "analyzer": index.analyzer,
        "revision": REVISIONS[index.analyzer],
        "size": index.size,
        "parts": [[segment.first, segment.size] for segment in index.segments],
        "arrays": [len(array) for array in arrays],
        "body": zlib.crc32(body),
        "firsts": [[list(key), first] for key, first in index.fragment_starts.items()],
    }
    header_bytes = sealed(header)
    packed: bytes = pa.compress(body, codec=_CODEC, asbytes=True)
    return _SIZE.pack(len(header_bytes)) + header_bytes + packed


def deserialize(file: bytes) -> TextIndex:
    """Deserialize an index.

    Raises:
        ValueError: the file is damaged or of another release.
    """
    header_bytes = _header_of(file)
    header: Mapping[str, Any] = unsealed(header_bytes)
    if header["format"] != _FORMAT:
        raise ValueError("a text index of another release")
    analyzer = Analyzer(header["analyzer"])
    if header["revision"] != REVISIONS[analyzer]:
        raise ValueError("a text index by another revision of the analyzer")
    sizes: Sequence[int] = header["arrays"]
    body: bytes = pa.decompress(
        file[_SIZE.size + len(header_bytes) :], decompressed_size=sum(sizes), codec=_CODEC, asbytes=True
    )
    if zlib.crc32(body) != header["body"]:
        raise ValueError("a damaged text index")
    arrays = _split(body, sizes)
    lengths = _read_numbers(next(arrays))
    has_text = np.unpackbits(np.frombuffer(next(arrays), np.uint8), count=header["size"]).astype(np.bool_)
    segments = []
    for first, covered in header["parts"]:
        words = _decode_words(_read_numbers(next(arrays)), next(arrays))
        segments.append(
            Segment(
                first,
                covered,
                words,
                build_id_index(words),
                _offsets(_read_numbers(next(arrays))),
                _read_numbers(next(arrays)),
                _offsets(_read_numbers(next(arrays))),
                _read_numbers(next(arrays)),
            )
        )
    fragment_starts = {tuple(str(file_name) for file_name in key): int(first) for key, first in header["firsts"]}
    return TextIndex(analyzer, tuple(segments), lengths, has_text, fragment_starts)


def _header_of(file: bytes) -> bytes:
    start = _SIZE.size
    return file[start : start + _SIZE.unpack(file[:start].ljust(start, b"\0"))[0]]


def _bytes(numbers: "npt.NDArray[Any]") -> bytes:
    return numbers.astype(_NUMBER).tobytes()


def _read_numbers(data: bytes) -> Numbers:
    return np.frombuffer(data, _NUMBER).astype(np.int32, copy=False)


def _offsets(counts: Numbers) -> "npt.NDArray[np.int64]":
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _split(body: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    whole, start = memoryview(body), 0
    for size in sizes:
        yield bytes(whole[start : start + size])
        start += size


def _encode_words(words: Values) -> tuple[Numbers, bytes]:
    """Return the lengths of texts in bytes, and their bytes."""
    data = [str(word).encode() for word in words.to_pylist()]
    return np.array([len(word) for word in data], dtype=np.int32), b"".join(data)


def _decode_words(lengths: Numbers, letters: bytes) -> Values:
    offsets = pa.py_buffer(_offsets(lengths).astype(np.int32).tobytes())
    make: Any = pa.StringArray.from_buffers
    found: Values = make(len(lengths), offsets, pa.py_buffer(letters))
    return found
