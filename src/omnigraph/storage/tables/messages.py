"""Protocol-buffer messages as lists of entries: enough to change one entry and leave alone what nobody here knows."""

from collections.abc import Iterable, Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Number, wire type and value; a value is a number or bytes.
Entry = tuple[int, int, int | bytes]


def entries(message: bytes) -> Iterator[Entry]:
    """What a message holds, in its order.

    Args:
        message (bytes): the message.

    Yields:
        Entry: one for each occurrence of a field.

    Raises:
        IndexError: the message is cut short.
    """
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        key, wire = tag >> 3, tag & 7
        if wire == VARINT:
            number, at = _read_varint(message, at)
            yield key, wire, number
            continue
        length = {FIXED64: 8, FIXED32: 4}.get(wire)
        if length is None:
            length, at = _read_varint(message, at)
        if at + length > len(message):
            raise IndexError(f"entry {key} ends behind its message")
        yield key, wire, message[at : at + length]
        at += length


def message(entries: Iterable[Entry]) -> bytes:
    """Entries as one message.

    Args:
        entries (Iterable[Entry]): in the order they shall have.

    Returns:
        bytes: the message.
    """
    return b"".join(map(_entry, entries))


def number(key: int, value: int) -> bytes:
    """An entry that is a number; nothing for zero, which is what its absence means."""
    return stated(key, value) if value else b""


def stated(key: int, value: int) -> bytes:
    """An entry that is a number, zero too: of a field whose absence means that there is none."""
    return varint(key << 3 | VARINT) + varint(value)


def within(key: int, value: bytes) -> bytes:
    """An entry that is bytes, a text or another message."""
    return varint(key << 3 | BYTES) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """A number of 64 bits at most, shorter when small."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def _entry(entry: Entry) -> bytes:
    key, wire, value = entry
    if isinstance(value, int):
        return varint(key << 3 | wire) + varint(value)
    if wire == BYTES:
        return within(key, value)
    return varint(key << 3 | wire) + value


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
