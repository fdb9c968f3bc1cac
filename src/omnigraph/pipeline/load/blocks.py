"""Pieces of files, each the work of one task, and blocks of pieces, each small enough to hold in memory.

A piece of a file of lines is a range of bytes; the lines that begin in it are its own, wherever they end. So pieces
need not know of each other, and nobody counts lines before there is something to say about one.
"""

import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError, beyond_limit
from omnigraph.pipeline.load.sources import Packing, Source
from omnigraph.storage.input_files import opened

_BOM = b"\xef\xbb\xbf"
_NEWLINE = b"\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task reads.

    Attributes:
        index: its number among the pieces of the load; their order is that of the records.
        source: of which file.
        start: the first byte of it, or the first group of rows.
        stop: the byte after it, or the group after it; None for all there is.
    """

    index: int
    source: Source
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file.

    Attributes:
        offset: where in the file it begins.
        data: the lines; the last one ends like the others.
    """

    offset: int
    data: bytes


def pieces_of(sources: Iterable[Source], *, piece_bytes: int) -> tuple[Piece, ...]:
    """The work, cut up.

    Args:
        sources: the files.
        piece_bytes: about how many bytes one task should read.

    Returns:
        tuple[Piece, ...]: in the order of the records.
    """
    pieces: list[Piece] = []
    for source in sources:
        if not source.can_be_split or source.size <= piece_bytes:
            pieces.append(Piece(len(pieces), source))
            continue
        count = -(-source.size // piece_bytes)
        step = -(-source.size // count)
        for start in range(0, source.size, step):
            pieces.append(Piece(len(pieces), source, start, min(start + step, source.size)))
    return tuple(pieces)


def blocks_of(piece: Piece, *, block_bytes: int) -> Iterator[Block]:
    """The lines of a piece.

    Args:
        piece: of a file of lines.
        block_bytes: about how large a block is.

    Yields:
        Block: whole lines, in order.

    Raises:
        LimitError: a line is too long.
        InvalidRequestError: the file is packed in another way than its name says.
    """
    with unpacked(piece.source) as file:
        at, rest = _to_the_first_line(file, piece)
        stop = piece.stop
        while stop is None or at < stop:
            wanted = block_bytes if stop is None else min(block_bytes, stop - at - len(rest))
            more = _read(file, wanted, piece.source) if wanted > 0 else b""
            data = rest + more
            ended = not more and wanted > 0
            if stop is not None and not ended and at + len(data) >= stop:
                data += _rest_of_line(file, data)
                yield Block(at, data)
                return
            cut = len(data) if ended else data.rfind(_NEWLINE) + 1
            if cut:
                whole = data[:cut]
                yield Block(at, whole if whole.endswith(_NEWLINE) else whole + _NEWLINE)
            if ended:
                return
            at, rest = at + cut, data[cut:]
            _check_length(len(rest))


def _to_the_first_line(file: IO[bytes], piece: Piece) -> tuple[int, bytes]:
    """Where the first line that begins in a piece begins, with what was read of it."""
    if piece.start == 0:
        first = _read(file, len(_BOM), piece.source)
        return (len(_BOM), b"") if first == _BOM else (0, first)
    # A line begins after the end of another: with the byte before, a line that begins at `start` is seen as well.
    file.seek(piece.start - 1)
    skipped = file.readline(limits.LOAD_LINE_BYTES_MAX + 1)
    _check_length(len(skipped))
    return piece.start - 1 + len(skipped), b""


def _rest_of_line(file: IO[bytes], data: bytes) -> bytes:
    if data.endswith(_NEWLINE):
        return b""
    rest = file.readline(limits.LOAD_LINE_BYTES_MAX + 1)
    _check_length(len(rest))
    return rest if rest.endswith(_NEWLINE) else rest + _NEWLINE


def _check_length(size: int) -> None:
    if size > limits.LOAD_LINE_BYTES_MAX:
        raise line_too_long(size)


def line_too_long(size: int) -> LimitError:
    """The error of a line that is longer than one may be."""
    return too_much("graph_batch_line_bytes", size, limits.LOAD_LINE_BYTES_MAX)


def too_much(resource: str, actual: int, limit: int) -> LimitError:
    """The error of a record that needs more of something than it may have."""
    return beyond_limit(resource, actual=actual, limit=limit)


def _read(file: IO[bytes], size: int, source: Source) -> bytes:
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error, pa.ArrowException) as fault:
        if source.packing is Packing.NONE:
            raise
        raise wrongly_packed(source, fault) from fault


def wrongly_packed(source: Source, fault: Exception) -> InvalidRequestError:
    """What an error from reading a packed file means: it is not as it says."""
    return InvalidRequestError(f"{source.name} is not {source.packing}, or is cut off: {fault}")


@contextmanager
def unpacked(source: Source) -> Iterator[IO[bytes]]:
    """A file's bytes as they were before they were packed."""
    if source.body is not None:
        yield io.BytesIO(source.body)
        return
    with opened(source.uri, source.size, source.storage_options) as file:
        if source.packing is Packing.NONE:
            yield file
            return
        unpack, wrap = cast(Any, pa.CompressedInputStream), cast(Any, pa.PythonFile)  # the stubs know fewer files
        stream: Any = unpack(wrap(file, mode="r"), source.packing.value)
        with stream:
            yield cast(IO[bytes], _Forward(stream))


class _Forward:
    """A stream that can only be read on."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401  (Arrow's streams have no type of their own)
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return bytes(self._stream.read(None if size < 0 else size))


def lines_at(source: Source, offsets: Sequence[int]) -> list[tuple[int, str]]:
    """Of lines that begin at some bytes, their numbers counted from one, and what is in them; in one pass.

    Args:
        source: a file of lines.
        offsets: where the lines begin, ascending.

    Returns:
        list[tuple[int, str]]: number and text of each.
    """
    found: list[tuple[int, str]] = []
    wanted = iter(offsets)
    next_one = next(wanted, None)
    number = 1
    for block in blocks_of(Piece(0, source), block_bytes=limits.LOAD_BLOCK_BYTES):
        end = block.offset + len(block.data)
        at = 0
        while next_one is not None and next_one < end:
            begin = max(next_one - block.offset, 0)
            number += block.data.count(_NEWLINE, at, begin)
            stop = block.data.index(_NEWLINE, begin)
            found.append((number, block.data[begin:stop].decode("utf-8", "replace").rstrip("\r")))
            at, next_one = begin, next(wanted, None)
        if next_one is None:
            break
        number += block.data.count(_NEWLINE, at)
    return found
