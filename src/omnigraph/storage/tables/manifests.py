"""A version's manifest, taken apart as far as a small change of rows needs it, and put together again with the change.

Nothing is guessed. A manifest in which anything is found that is not known here, or that another release of Lance has
written, is not taken apart at all: then Lance makes the next version.

The file: the indexes, where there are any; the transaction; the manifest; where the manifest begins, and four bytes
each of version and magic. Each message has its length before it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

import lance

from omnigraph.storage.tables.messages import entries, number, stated, within

# Entries of a manifest. Those named first never change from one version to the next, as long as only rows do.
_COLUMNS, _SCHEMA_METADATA, _WRITER, _DATA_FORMAT, _CONFIG, _TABLE_METADATA = 1, 5, 13, 15, 16, 19
_FRAGMENT, _VERSION, _INDEXES_AT, _MADE_AT, _READERS_MUST, _WRITERS_MUST = 2, 3, 6, 7, 9, 10
_GREATEST_FRAGMENT, _TRANSACTION_FILE, _TRANSACTION_AT = 11, 12, 23
_STAY = frozenset({_COLUMNS, _SCHEMA_METADATA, _WRITER, _DATA_FORMAT, _CONFIG, _TABLE_METADATA})
_MADE_ANEW = frozenset({_VERSION, _INDEXES_AT, _MADE_AT, _TRANSACTION_FILE, _TRANSACTION_AT})
# Of a fragment and of its deletion vector.
_NUMBER, _FILE, _DELETIONS, _ROWS = 1, 2, 3, 4
_VECTOR_KIND, _VECTOR_VERSION, _VECTOR_ID, _VECTOR_ROWS = 1, 2, 3, 4
_VECTOR = frozenset({_VECTOR_KIND, _VECTOR_VERSION, _VECTOR_ID, _VECTOR_ROWS})
_AS_BITMAP = 1
# What readers and writers must know: deletion vectors, or nothing.
_DELETION_VECTORS = 1
_FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_THIS_LANCE = {1: b"lance", 2: lance.__version__.encode()}
# What taking a file apart meets where it is not what was written.
_DAMAGE = (IndexError, KeyError, OverflowError, struct.error)


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector, as a fragment names it.

    Attributes:
        version: the version it was made for.
        id: a random number.
        rows: how many rows it deletes.
        is_bitmap: it is a bitmap; otherwise numbers in an Arrow file.
    """

    version: int
    id: int
    rows: int
    is_bitmap: bool

    def file(self, fragment: int) -> str:
        """The file it lies in, under the table's folder."""
        return f"_deletions/{fragment}-{self.version}-{self.id}.{'bin' if self.is_bitmap else 'arrow'}"

    def message(self) -> bytes:
        """As a fragment holds it."""
        return (
            number(_VECTOR_KIND, _AS_BITMAP if self.is_bitmap else 0)
            + number(_VECTOR_VERSION, self.version)
            + number(_VECTOR_ID, self.id)
            + number(_VECTOR_ROWS, self.rows)
        )


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment.

    Attributes:
        number: its number, zero while it has none.
        files: the message's entries of its data files.
        rows: how many rows its files hold.
        vector: which of them are deleted.
    """

    number: int
    files: bytes
    rows: int
    vector: Vector | None = None

    def message(self) -> bytes:
        """As a manifest holds it."""
        deletions = b"" if self.vector is None else within(_DELETIONS, self.vector.message())
        return number(_NUMBER, self.number) + self.files + deletions + number(_ROWS, self.rows)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a version consists of.

    Attributes:
        version: its number.
        stays: entries that its successor has too.
        fragments: its entries of fragments, by number, in order.
        greatest: the greatest number any fragment ever had; -1 before the first.
        must: what readers and writers must know.
        indexes: the part of the file that tells of indexes, with its length.
        format: the version of the file's own form.
    """

    version: int
    stays: bytes
    fragments: Mapping[int, bytes]
    greatest: int
    must: int
    indexes: bytes
    format: tuple[int, int]

    def fragment(self, number: int) -> Fragment | None:
        """One of its fragments; None where there is no such, or more is known of it than here is.

        Raises:
            ValueError: it is damaged.
        """
        entry = self.fragments.get(number)
        try:
            return None if entry is None else _fragment(next(entries(entry))[2])
        except _DAMAGE as error:
            raise ValueError(f"corrupt manifest: fragment {number}: {error}") from error

    def changed(self, version: int, updated: Mapping[int, bytes], added: Fragment | None) -> "Manifest":
        """Its successor.

        Args:
            version (int): the number of that.
            updated (Mapping[int, bytes]): messages of fragments that are others there.
            added (Fragment | None): a fragment more, which gets the next number.

        Returns:
            Manifest: with the rest as it is.
        """
        fragments = dict(self.fragments)
        for number_, message in updated.items():
            fragments[number_] = within(_FRAGMENT, message)
        greatest = self.greatest
        if added is not None:
            greatest += 1
            fragments[greatest] = within(_FRAGMENT, replace(added, number=greatest).message())
        must = self.must | (_DELETION_VECTORS if updated else 0)
        return Manifest(version, self.stays, fragments, greatest, must, self.indexes, self.format)

    def _message(self, made_at_us: int) -> bytes:
        seconds, left = divmod(made_at_us, 1_000_000)
        return b"".join(
            (
                self.stays,
                *self.fragments.values(),
                number(_VERSION, self.version),
                within(_MADE_AT, number(1, seconds) + number(2, left * 1_000)),
                number(_READERS_MUST, self.must),
                number(_WRITERS_MUST, self.must),
                b"" if self.greatest < 0 else stated(_GREATEST_FRAGMENT, self.greatest),
                stated(_INDEXES_AT, 0) if self.indexes else b"",
                stated(_TRANSACTION_AT, len(self.indexes)),
            )
        )

    def file(self, made_at_us: int, transaction: bytes) -> bytes:
        """The whole file.

        Args:
            made_at_us (int): when, microseconds since 1970.
            transaction (bytes): what made this version.

        Returns:
            bytes: its content.
        """
        message = self._message(made_at_us)
        before = self.indexes + _LENGTH.pack(len(transaction)) + transaction
        return b"".join((before, _LENGTH.pack(len(message)), message, _FOOTER.pack(len(before), *self.format, _MAGIC)))


# Stands for a manifest that was looked at and is Lance's to change.
NOT_FOR_US = Manifest(0, b"", {}, -1, 0, b"", (0, 0))


def read_manifest(file: bytes) -> Manifest | None:
    """Take a manifest apart.

    Args:
        file (bytes): the file's content.

    Returns:
        Manifest | None: None if there is anything in it that is not known here.

    Raises:
        ValueError: it is no manifest.
    """
    try:
        begins, major, minor, magic = _FOOTER.unpack(file[-_FOOTER.size :])
        if magic != _MAGIC:
            raise ValueError(f"corrupt manifest: it ends with {magic!r} instead of {_MAGIC!r}")
        return _taken_apart(file, _section(file, begins)[_LENGTH.size :], (major, minor))
    except _DAMAGE as error:
        raise ValueError(f"corrupt manifest: {error}") from error


def _taken_apart(file: bytes, message: bytes, form: tuple[int, int]) -> Manifest | None:
    stays: list[bytes] = []
    fragments: dict[int, bytes] = {}
    numbers: dict[int, int] = {}
    is_ours = False
    for key, _, value in entries(message):
        if key == _FRAGMENT and isinstance(value, bytes):
            fragments[_number_of(value)] = within(key, value)
        elif key in _STAY and isinstance(value, bytes):
            stays.append(within(key, value))
            is_ours = is_ours or (key == _WRITER and {each: found for each, _, found in entries(value)} == _THIS_LANCE)
        elif isinstance(value, int) and key in (_READERS_MUST, _WRITERS_MUST, _GREATEST_FRAGMENT, *_MADE_ANEW):
            numbers[key] = value
        elif key not in _MADE_ANEW:
            return None
    must = numbers.get(_READERS_MUST, 0)
    greatest = numbers.get(_GREATEST_FRAGMENT, -1)
    if (
        not is_ours
        or must not in (0, _DELETION_VECTORS)
        or numbers.get(_WRITERS_MUST, 0) != must
        or greatest < max(fragments, default=-1)
    ):
        return None
    return Manifest(
        version=numbers[_VERSION],
        stays=b"".join(stays),
        fragments=fragments,
        greatest=greatest,
        must=must,
        indexes=_section(file, numbers[_INDEXES_AT]) if _INDEXES_AT in numbers else b"",
        format=form,
    )


def _fragment(message: int | bytes) -> Fragment | None:
    files: list[bytes] = []
    numbers = {}
    vector: dict[int, int | bytes] | None = None
    for key, _, value in entries(message) if isinstance(message, bytes) else ():
        if key == _FILE and isinstance(value, bytes):
            files.append(within(key, value))
        elif key == _DELETIONS and isinstance(value, bytes):
            vector = {each: found for each, _, found in entries(value)}
        elif key in (_NUMBER, _ROWS) and isinstance(value, int):
            numbers[key] = value
        else:
            return None
    if vector is not None and not (vector.keys() <= _VECTOR and all(isinstance(each, int) for each in vector.values())):
        return None
    return Fragment(
        number=numbers.get(_NUMBER, 0),
        files=b"".join(files),
        rows=numbers.get(_ROWS, 0),
        vector=None if vector is None else _vector(vector),
    )


def _vector(found: Mapping[int, int | bytes]) -> Vector:
    return Vector(
        version=int(found.get(_VECTOR_VERSION, 0)),
        id=int(found.get(_VECTOR_ID, 0)),
        rows=int(found.get(_VECTOR_ROWS, 0)),
        is_bitmap=found.get(_VECTOR_KIND, 0) == _AS_BITMAP,
    )


def _number_of(fragment: bytes) -> int:
    key, _, value = next(entries(fragment), (_NUMBER, 0, 0))
    return value if key == _NUMBER and isinstance(value, int) else 0


def _section(file: bytes, begins: int) -> bytes:
    """A message in the file, with its length before it."""
    (length,) = _LENGTH.unpack_from(file, begins)
    section = file[begins : begins + _LENGTH.size + length]
    if len(section) != _LENGTH.size + length:
        raise IndexError(f"a part at {begins} ends behind the file")
    return section
