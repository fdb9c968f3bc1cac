"""No foreign exception leaves the table port, and each says what to do next."""

import errno
import importlib
import inspect
import pkgutil
import random  # noqa: TID251  (seeded damage)
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from omnigraph import errors
from omnigraph.errors import FormatError, GraphError, InternalError, UnavailableError
from omnigraph.failpoints import Crash
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("number", pa.int64()),
    pa.field("text", pa.string()),
]
SCHEMA = pa.schema(FIELDS)


def lance_exceptions() -> Iterator[type[BaseException]]:
    """Every exception class that a module of Lance defines or uses."""
    for module in pkgutil.walk_packages(lance.__path__, "lance."):
        if module.name.startswith(("lance.torch", "lance.conftest")):
            continue  # need packages that are not installed
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            continue  # parts for other libraries
        for value in vars(loaded).values():
            if inspect.isclass(value) and issubclass(value, BaseException):
                yield value


FOREIGN: tuple[type[BaseException], ...] = (
    *sorted({*lance_exceptions()}, key=str),
    *(value for value in vars(pa).values() if inspect.isclass(value) and issubclass(value, pa.ArrowException)),
    OSError,
    FileNotFoundError,
    PermissionError,
    TimeoutError,
    ConnectionResetError,
    ValueError,
    UnicodeEncodeError,
    RuntimeError,
    NotImplementedError,
    TypeError,
    KeyError,
    IndexError,
    MemoryError,
)


def raised(error: BaseException) -> GraphError:
    with pytest.raises(GraphError) as caught, mapped("nodes/01X", 7):
        raise error
    assert caught.value.__cause__ is error
    return caught.value


def test_lance_has_an_exception_of_its_own_to_walk_over() -> None:
    assert CommitConflictError in FOREIGN


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_foreign_exception_is_mapped(kind: type[BaseException]) -> None:
    error = kind("utf-8", "x", 0, 1, "why") if kind is UnicodeEncodeError else kind("something")
    assert "nodes/01X" in raised(error).message


FULL = "LanceError(IO): No space left on device (os error 28), rust/lance-file/src/writer.rs:254:9"
GONE = "Dataset at path x/_versions/d9.manifest was not found: Not found: x/_versions/d9.manifest"
GONE_REMOTELY = "Error performing GET http://h/x in 1ms - Server returned non-2xx status code: 404 Not Found: "
SILENT = "LanceError(IO): Generic S3 error: Error performing HEAD http://h/x in 102ms, after 1 retries"
NOWHERE = "LanceError(IO): Generic S3 error: dns error: host name not found"
SHORT = "LanceError(IO): file size is too small, x/rust/lance-io/src/utils.rs:172:20"
NO_MAGIC = "External error: Invalid user input: bad magic, x/rust/lance-file/src/reader.rs:797:24"
QUOTING = "Invalid user input: Schema error: No field named was not found: connection timed out"


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), UnavailableError, "store_full"),
        (OSError(FULL), UnavailableError, "store_full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), UnavailableError, "store_full"),
        (PermissionError(errno.EACCES, "Permission denied"), errors.PermissionDeniedError, "forbidden"),
        (OSError("Server returned non-2xx status code: 403 Forbidden: "), errors.PermissionDeniedError, "forbidden"),
        (FileNotFoundError(errno.ENOENT, "No such file"), FormatError, "version_reclaimed"),
        (ValueError(GONE), FormatError, "version_reclaimed"),
        (OSError(GONE_REMOTELY), FormatError, "version_reclaimed"),
        (OSError(SILENT), UnavailableError, "unavailable"),
        (OSError(NOWHERE), UnavailableError, "unavailable"),
        (OSError("Server returned non-2xx status code: 503 Service Unavailable"), UnavailableError, "unavailable"),
        (TimeoutError("timed out"), UnavailableError, "unavailable"),
        (ConnectionResetError("reset"), UnavailableError, "unavailable"),
        (OSError(errno.EMFILE, "Too many open files"), UnavailableError, "unavailable"),
        (CommitConflictError("Failed find unused random u64"), UnavailableError, "unavailable"),
        (MemoryError("no more"), errors.LimitError, "limit_exceeded"),
        (ValueError(SHORT), FormatError, "damaged_table"),
        (ValueError("Invalid user input: Dataset snapshot mixes V1 and V2 files"), FormatError, "damaged_table"),
        (pa.ArrowInvalid(NO_MAGIC), FormatError, "damaged_table"),
        (ValueError(QUOTING), errors.InvalidRequestError, "bad_request"),
        (OSError("Dataset already exists: x"), errors.AlreadyExistsError, "already_exists"),
        (RuntimeError("something nobody foresaw"), InternalError, "internal"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_happened_is_told_apart(error: Exception, expected: type[GraphError], code: str) -> None:
    met = raised(error)
    assert type(met) is expected
    assert met.code == code


@pytest.mark.parametrize("known", [True, False])
def test_where_in_the_source_of_lance_it_arose_is_told_only_of_what_nobody_foresaw(known: bool) -> None:
    places = ", /home/x/lance/rust/lance-io/src/object_reader.rs:335:56, /rustc/48a2/library/core/src/function.rs:250:5"
    what = "LanceError(IO): Not found: graph/data/1.lance" if known else "something else"
    met = raised(RuntimeError(what + places))
    assert met.message.endswith(what if known else what + places)


def test_a_panic_of_native_code_is_an_error_like_any_other() -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})("index out of range")
    met = raised(panic)
    assert isinstance(met, FormatError)
    assert met.code == "damaged_table"


@pytest.mark.parametrize("error", [Crash(), KeyboardInterrupt(), SystemExit(), errors.ConflictError("ours")])
def test_what_is_not_foreign_passes_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, mapped("nodes/01X"):
        raise error
    assert caught.value is error


def damage(content: bytes, how: str, source: random.Random) -> bytes:
    match how:
        case "cut short":
            return content[: source.randrange(len(content))]
        case "emptied":
            return b""
        case "zeroed":
            return bytes(len(content))
        case _:
            return source.randbytes(len(content))


@pytest.mark.parametrize("how", ["cut short", "emptied", "zeroed", "overwritten", "removed"])
def test_damaged_files_are_told_or_harmless(root: Path, tables: Tables, how: str) -> None:
    """Whichever file of a version is damaged, the answer is right or a `GraphError`; nothing else comes out."""
    content = {"id": [f"k{n}" for n in range(400)], "number": list(range(400)), "text": ["some words"] * 400}
    pin = tables.create("nodes/01X", SCHEMA)
    pin = tables.stage_rows(pin, RowsToStage(appends=pa.table(content, schema=SCHEMA))).pin
    specs = [
        IndexSpec("by_id", "id", IndexKind.BTREE),
        IndexSpec("by_part", "text", IndexKind.NGRAM),
        IndexSpec("by_number", "number", IndexKind.BTREE),
    ]
    pin = tables.stage_index(pin, *specs).pin
    pin = tables.stage_rows(pin, RowsToStage(deleted_ids=("k1", "k2"))).pin
    named = tables.files(pin) - tables.files(tables.create("nodes/01OTHER", SCHEMA))
    named -= {name for name in named if name.endswith(("_hint.json", f"{2**64 - 2}.manifest"))}
    files = [
        file
        for name in sorted(named)
        for file in (sorted((root / name).glob("*.*")) if name.endswith("/") else [root / name])
    ]
    assert len(files) >= 8
    source = random.Random(7)
    met = []
    for file in files:
        whole = file.read_bytes()
        if how == "removed":
            file.unlink()
        else:
            file.write_bytes(damage(whole, how, source))
        shared_session.cache_clear()
        try:
            table = Tables(str(root)).open(pin)
            answers = table.count("id = 'k7'"), table.scan().num_rows, table.count("contains(text, 'words')")
            assert answers == (1, 398, 398)
        except GraphError as error:
            met.append(error)
        file.write_bytes(whole)
    assert met
    assert all(isinstance(error, FormatError | InternalError) for error in met)
    if how == "removed":
        assert {error.code for error in met} == {"version_reclaimed"}
    assert sum(isinstance(error, FormatError) for error in met) >= len(met) - 2


def test_a_store_that_does_not_answer_is_unavailable() -> None:
    options = {
        "aws_endpoint": "http://127.0.0.1:9",
        "allow_http": "true",
        "aws_access_key_id": "x",
        "aws_secret_access_key": "x",
        "aws_region": "us-east-1",
        "client_max_retries": "0",
    }
    with pytest.raises(UnavailableError):
        Tables("s3://bucket/root", storage_options=options).create("nodes/01X", SCHEMA)
