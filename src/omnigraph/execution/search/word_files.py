"""Indexes over words beside the graph, so that a process that has just started need not read all texts.

    size of the head, head, packed arrays

The head says for which fragments and by which analyzer the index was made, and what the arrays should be. A file that
is not that is no file: whatever goes wrong here, the index is made from the texts instead.
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
from omnigraph.execution.id_index import index_ids
from omnigraph.execution.numbering import Numbering
from omnigraph.execution.search.text_index import Part, TextIndex
from omnigraph.execution.search.words import REVISIONS
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin
from omnigraph.storage.derived import WORDS, is_of_another_release, sealed, unsealed, words_file, words_of
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError

# 3: words are those of an analyzer, which the head names.
_FORMAT = 3
_FILES_TRIED_MAX = 2
_CODEC: Final = "zstd"
_SIZE = struct.Struct("<Q")
_NUMBER = np.dtype("<i4")

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class IndexedColumn:
    """A column of texts by its number, and the analyzer that makes words of them."""

    number: int
    analyzer: Analyzer

    @property
    def name(self) -> str:
        """The name of its file: other words are in another file."""
        return f"{self.number}-{self.analyzer}-{REVISIONS[self.analyzer]}"


class WordFiles:
    """The indexes over words of one graph that are kept in files."""

    def __init__(self, store: ObjectStore, *, read_only: bool) -> None:
        self._store = store
        self._read_only = read_only
        # How many texts the file written or read last covers, by table and column.
        self._covered: dict[tuple[str, IndexedColumn], int] = {}

    def has(self, pin: Pin, column: IndexedColumn, numbering: Numbering) -> bool:
        """Whether there is a file of this very version."""
        if numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        return words_file(pin.table, pin.version, column.name) in self._paths(pin, column)

    def is_due(self, pin: Pin, column: IndexedColumn, numbering: Numbering, *, is_new: bool) -> bool:
        """Whether upkeep should see to a file of this version.

        Args:
            pin (Pin): the version.
            column (IndexedColumn): the column of texts.
            numbering (Numbering): of the version's rows.
            is_new (bool): whether upkeep has just made the version: what there is of others may be of no use to it.

        Returns:
            bool: False for few texts, and for a version that has one.
        """
        if self._read_only or numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        found = list(self._paths(pin, column))
        return words_file(pin.table, pin.version, column.name) not in found and (is_new or not found)

    def load(self, pin: Pin, column: IndexedColumn, numbering: Numbering) -> TextIndex | None:
        """The index of a version, or of the first rows of it.

        Args:
            pin (Pin): the version.
            column (IndexedColumn): the column of texts.
            numbering (Numbering): of the version's rows.

        Returns:
            TextIndex | None: None where no file is of use.
        """
        if numbering.size < limits.WORDS_FILE_TEXTS_MIN:
            return None  # made sooner than asked for
        for path in self._paths(pin, column):
            found = self._read(path)
            if found is not None and found.analyzer is column.analyzer and found.begins(numbering) and found.size:
                self._covered[pin.table, column] = found.size
                return found
        return None

    def keep(self, pin: Pin, column: IndexedColumn, index: TextIndex, *, is_anew: bool) -> bool:
        """Write an index for other processes, if it is large and covers enough that no file covers yet.

        Args:
            pin (Pin): the version it was made for.
            column (IndexedColumn): the column of texts.
            index (TextIndex): over its texts.
            is_anew (bool): whether it continues no other one: rows lie elsewhere than they did in any file.

        Returns:
            bool: whether it was written; that it could not be is no error.
        """
        covered = 0 if is_anew else self._covered.get((pin.table, column), 0)
        if self._read_only or index.size < limits.WORDS_FILE_TEXTS_MIN:
            return False
        if abs(index.size - covered) <= covered * limits.WORDS_STALE_SHARE:
            return False
        try:
            self._store.put(words_file(pin.table, pin.version, column.name), to_bytes(index))
        except StoreError:
            return False
        self._covered[pin.table, column] = index.size
        return True

    def damaged(self) -> Iterator[str]:
        """The paths of files that are not what was written; nobody believes them."""
        for listed in list(self._store.list(WORDS)):
            if self._read(listed.path) is None:
                with contextlib.suppress(ObjectNotFound):  # a sweep took it away meanwhile
                    if not is_of_another_release(_head_of(self._store.get(listed.path)), _FORMAT):
                        yield listed.path

    def _paths(self, pin: Pin, column: IndexedColumn) -> Iterator[str]:
        """The file of this version, then those of others, the last written first; few."""
        own = words_file(pin.table, pin.version, column.name)
        try:
            listed = list(self._store.list(words_of(pin.table)))
        except StoreError:
            return
        mine = [each for each in listed if each.path.endswith(f"/{column.name}")]
        mine.sort(key=lambda each: (each.path == own, each.modified_us), reverse=True)
        yield from (each.path for each in mine[:_FILES_TRIED_MAX])

    def _read(self, path: str) -> TextIndex | None:
        try:
            return from_bytes(self._store.get(path))
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


def to_bytes(index: TextIndex) -> bytes:
    """An index as a file."""
    arrays: list[bytes] = [_bytes(index.lengths), np.packbits(index.has_text).tobytes()]
    for part in index.parts:
        offsets, letters = _text_arrays(part.words)
        arrays += [
            _bytes(offsets),
            letters,
            # Differences are small numbers, which pack well.
            _bytes(np.diff(part.starts)),
            _bytes(part.texts),
            _bytes(np.diff(part.place_starts)),
            _bytes(part.places),
        ]
    body = b"".join(arrays)
    head = {
        "format": _FORMAT,
        "analyzer": index.analyzer,
        "revision": REVISIONS[index.analyzer],
        "size": index.size,
        "parts": [[part.first, part.size] for part in index.parts],
        "arrays": [len(each) for each in arrays],
        "body": zlib.crc32(body),
        "firsts": [[list(key), first] for key, first in index.firsts.items()],
    }
    said = sealed(head)
    packed: bytes = pa.compress(body, codec=_CODEC, asbytes=True)
    return _SIZE.pack(len(said)) + said + packed


def from_bytes(file: bytes) -> TextIndex:
    """An index from a file.

    Raises:
        ValueError: it is not what was written.
    """
    said = _head_of(file)
    head: Mapping[str, Any] = unsealed(said)
    if head["format"] != _FORMAT:
        raise ValueError("an index over words of another release")
    analyzer = Analyzer(head["analyzer"])
    if head["revision"] != REVISIONS[analyzer]:
        raise ValueError("an index over words as another release has them")
    sizes: Sequence[int] = head["arrays"]
    body: bytes = pa.decompress(
        file[_SIZE.size + len(said) :], decompressed_size=sum(sizes), codec=_CODEC, asbytes=True
    )
    if zlib.crc32(body) != head["body"]:
        raise ValueError("a damaged index over words")
    arrays = _split(body, sizes)
    lengths = _numbers(next(arrays))
    has_text = np.unpackbits(np.frombuffer(next(arrays), np.uint8), count=head["size"]).astype(np.bool_)
    parts = []
    for first, covered in head["parts"]:
        words = _texts(_numbers(next(arrays)), next(arrays))
        parts.append(
            Part(
                first,
                covered,
                words,
                index_ids(words),
                _sums(_numbers(next(arrays))),
                _numbers(next(arrays)),
                _sums(_numbers(next(arrays))),
                _numbers(next(arrays)),
            )
        )
    firsts = {tuple(str(each) for each in key): int(first) for key, first in head["firsts"]}
    return TextIndex(analyzer, tuple(parts), lengths, has_text, firsts)


def _head_of(file: bytes) -> bytes:
    start = _SIZE.size
    return file[start : start + _SIZE.unpack(file[:start].ljust(start, b"\0"))[0]]


def _bytes(numbers: "npt.NDArray[Any]") -> bytes:
    return numbers.astype(_NUMBER).tobytes()


def _numbers(data: bytes) -> Numbers:
    return np.frombuffer(data, _NUMBER).astype(np.int32, copy=False)


def _sums(counts: Numbers) -> "npt.NDArray[np.int64]":
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _split(body: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    whole, start = memoryview(body), 0
    for size in sizes:
        yield bytes(whole[start : start + size])
        start += size


def _text_arrays(words: Values) -> tuple[Numbers, bytes]:
    """The lengths of texts in bytes, and their bytes."""
    data = [str(each).encode() for each in words.to_pylist()]
    return np.array([len(each) for each in data], dtype=np.int32), b"".join(data)


def _texts(lengths: Numbers, letters: bytes) -> Values:
    offsets = pa.py_buffer(_sums(lengths).astype(np.int32).tobytes())
    make: Any = pa.StringArray.from_buffers
    found: Values = make(len(lengths), offsets, pa.py_buffer(letters))
    return found
