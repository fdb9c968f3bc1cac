"""Render results as text: rows in every output format, tables, changes of entities; and write output files."""

import csv
import io
import json
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from omnigraph.clock import readable_time
from omnigraph.errors import InvalidRequestError

FORMATS = ("table", "kv", "csv", "jsonl", "json")
WIDTH = 80
_NARROWEST = 6
_CAUSE = {
    "commit": "graph_commit_id",
    "branch": "authored_branch",
    "parent": "parent_commit_id",
    "merged_parent": "merged_parent_commit_id",
    "actor": "actor_id",
    "authored_at": "authored_at",
    "kind": "kind",
    "message": "message",
}


def render_result(
    document: Mapping[str, Any], output_format: str, *, width: int = WIDTH, wrap: bool = False, bold: bool = False
) -> Iterator[str]:
    """Render the JSON document of a query result in one of `FORMATS`, line by line.

    In the format `table`, a cell longer than `width` is truncated, or continued on further lines with `wrap`.
    Columns of numbers are aligned to the right, and with `bold` the names of columns stand out on a terminal.
    """
    columns: Sequence[str] = document.get("columns", ())
    rows: Sequence[Mapping[str, Any]] = document["rows"]
    match output_format:
        case "json":
            yield json.dumps(document, indent=2, ensure_ascii=False)
        case "jsonl":
            metadata = {"kind": "metadata", **{key: document[key] for key in ("query_name", "target", "row_count")}}
            for line in (metadata, *rows):
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        case "csv":
            yield from _csv(columns, rows)
        case "kv":
            yield _heading(document)
            for number, row in enumerate(rows, 1):
                if number > 1:
                    yield ""
                yield f"row {number}"
                for name in columns:
                    yield f"{name}: {cell(row[name])}"
        case _:
            yield _heading(document)
            numeric = frozenset(
                index for index, name in enumerate(columns) if all(_is_number(row[name]) for row in rows)
            )
            cells = [[cell(row[name]) for name in columns] for row in rows]
            yield from table(columns, cells, width=width, wrap=wrap, numeric=numeric, bold=bold)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int = WIDTH,
    wrap: bool = False,
    numeric: Collection[int] = (),
    bold: bool = False,
) -> Iterator[str]:
    """Render rows of texts under their column names; those of the columns in `numeric` are aligned to the right."""
    if not columns:
        yield "(no rows)"
        return
    parts = [[_fitted(text, width, wrap=wrap) for text in row] for row in rows]
    widths = [
        max(len(name), *(len(line) for row in parts for line in row[column]), 0) for column, name in enumerate(columns)
    ]
    sides = [">" if column in numeric else "<" for column in range(len(columns))]
    heading = " | ".join(f"{name:{side}{size}}" for name, side, size in zip(columns, sides, widths, strict=True))
    yield f"\x1b[1m{heading.rstrip()}\x1b[0m" if bold else heading.rstrip()
    yield "-+-".join("-" * size for size in widths)
    for row in parts:
        for line in range(max(len(lines) for lines in row)):
            texts = (lines[line] if line < len(lines) else "" for lines in row)
            yield " | ".join(
                f"{text:{side}{size}}" for text, side, size in zip(texts, sides, widths, strict=True)
            ).rstrip()


def fitting_width(columns: Sequence[str], rows: Sequence[Sequence[str]], window: int) -> int | None:
    """Return the largest cell width with which a table fits a window; None if none does.

    Args:
        columns: the column names, which are never truncated.
        rows: the cells.
        window: the number of characters in a line.
    """
    widest = [max([len(name), *(len(row[column]) for row in rows)]) for column, name in enumerate(columns)]
    separators = 3 * (len(columns) - 1)
    for limit in range(max([WIDTH, *widest]), _NARROWEST - 1, -1):
        cells = sum(max(len(name), min(width, limit)) for name, width in zip(columns, widest, strict=True))
        if cells + separators <= window:
            return limit
    return None


def size(count: int) -> str:
    """Format a number of bytes with its unit."""
    number = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:.1f} TB"


def cell(value: object) -> str:
    """Format a value as the text of a cell."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _heading(document: Mapping[str, Any]) -> str:
    target = document["target"]
    source = f"branch {target['branch']}" if target["branch"] is not None else f"snapshot {target['snapshot']}"
    return f"{document['row_count']} rows from {source} via {document['query_name']}"


def _fitted(text: str, width: int, *, wrap: bool) -> list[str]:
    flat = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    if len(flat) <= width:
        return [flat]
    return textwrap.wrap(flat, width, break_on_hyphens=False) if wrap else [f"{flat[: width - 1]}…"]


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(row[name]) for name in columns])
    yield text.getvalue().removesuffix("\n")


# -- changes of entities -----------------------------------------------------------------------------------------------


def cause_lines(cause: Mapping[str, Any]) -> list[str]:
    """Render the commit that changes belong to."""
    lines = [f"{name}: {cause[key]}" for name, key in _CAUSE.items() if key in cause]
    return [*lines, f"time: {readable_time(cause['authored_at'])}"]


def change_lines(change: Mapping[str, Any]) -> list[str]:
    """Render one change: the operation and the entity, then its properties."""
    first = f"{change['op']} {change['kind']} {change['type']['name']} {change['id']}"
    return [first, *image_lines(change.get("before"), change.get("after"))]


def image_lines(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """Render the properties that differ between two images of an entity."""
    old, new = _image_values(before), _image_values(after)
    lines = []
    for name in [*new, *(name for name in old if name not in new)]:
        if name not in old:
            lines.append(f"  + {name}: {cell(new[name])}")
        elif name not in new:
            lines.append(f"  - {name}: {cell(old[name])}")
        elif old[name] != new[name]:
            lines.append(f"  {name}: {cell(old[name])} -> {cell(new[name])}")
    return lines


def count_lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Render the numbers of inserted, updated and deleted entities by type."""
    return [
        f"{key}: {count['inserted']} inserted, {count['updated']} updated, {count['deleted']} deleted"
        for key, count in counts.items()
    ]


def _image_values(image: Mapping[str, Any] | None) -> dict[str, Any]:
    if image is None:
        return {}
    return {**image.get("endpoints", {}), **image["properties"]}


# -- files -------------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at its path only when it is complete.

    Args:
        path: the file.
        what: its content, for the error message.

    Raises:
        InvalidRequestError: it cannot be written.
    """
    if not path.name:
        raise InvalidRequestError(f"{what} cannot be written to {path}: not a file name", code="output_unwritable")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise InvalidRequestError(
            f"{what} cannot be written to {path}: {error.strerror or error}", code="output_unwritable"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
