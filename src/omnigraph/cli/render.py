"""The rows of a result in each format there is."""

import csv
import io
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

FORMATS = ("table", "kv", "csv", "jsonl", "json")
WIDTH = 80
_NARROWEST = 6


def rendered(document: Mapping[str, Any], form: str, *, width: int = WIDTH, wrap: bool = False) -> Iterator[str]:
    """A result in one of the formats, line by line.

    Args:
        document: the result as a JSON document.
        form: one of `FORMATS`.
        width: of a cell at most, in the format `table`.
        wrap: put the rest of a longer cell on further lines, instead of cutting it.
    """
    columns: Sequence[str] = document.get("columns", ())
    rows: Sequence[Mapping[str, Any]] = document["rows"]
    match form:
        case "json":
            yield json.dumps(document, indent=2, ensure_ascii=False)
        case "jsonl":
            about = {"kind": "metadata", **{key: document[key] for key in ("query_name", "target", "row_count")}}
            for each in (about, *rows):
                yield json.dumps(each, ensure_ascii=False, separators=(",", ":"))
        case "csv":
            yield from _csv(columns, rows)
        case "kv":
            yield _heading(document)
            for at, row in enumerate(rows, 1):
                if at > 1:
                    yield ""
                yield f"row {at}"
                for name in columns:
                    yield f"{name}: {cell(row[name])}"
        case _:
            yield _heading(document)
            yield from table(columns, [[cell(row[name]) for name in columns] for row in rows], width=width, wrap=wrap)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int = WIDTH, wrap: bool = False
) -> Iterator[str]:
    """Rows of texts under their headings."""
    if not columns:
        yield "(no rows)"
        return
    parts = [[_fitted(text, width, wrap=wrap) for text in row] for row in rows]
    widths = [max(len(name), *(len(line) for row in parts for line in row[at]), 0) for at, name in enumerate(columns)]
    yield " | ".join(f"{name:<{widths[at]}}" for at, name in enumerate(columns)).rstrip()
    yield "-+-".join("-" * wide for wide in widths)
    for row in parts:
        for line in range(max(len(lines) for lines in row)):
            shown = (lines[line] if line < len(lines) else "" for lines in row)
            yield " | ".join(f"{text:<{widths[at]}}" for at, text in enumerate(shown)).rstrip()


def fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], window: int) -> int | None:
    """How wide cells may be at most for a table to fit a window; None where it cannot, however narrow they are.

    Args:
        columns: the headings, which are never cut.
        rows: the cells.
        window: how many characters fit a line.
    """
    widest = [max([len(name), *(len(row[at]) for row in rows)]) for at, name in enumerate(columns)]
    between = 3 * (len(columns) - 1)
    for cap in range(max([WIDTH, *widest]), _NARROWEST - 1, -1):
        if sum(max(len(name), min(wide, cap)) for name, wide in zip(columns, widest, strict=True)) + between <= window:
            return cap
    return None


def size(count: int) -> str:
    """Bytes as people read them."""
    number = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:.1f} TB"


def cell(value: object) -> str:
    """A value as a text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _heading(document: Mapping[str, Any]) -> str:
    target = document["target"]
    whence = f"branch {target['branch']}" if target["branch"] is not None else f"snapshot {target['snapshot']}"
    return f"{document['row_count']} rows from {whence} via {document['query_name']}"


def _fitted(text: str, width: int, *, wrap: bool) -> list[str]:
    flat = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    if len(flat) <= width:
        return [flat]
    return textwrap.wrap(flat, width, break_on_hyphens=False) if wrap else [f"{flat[: width - 1]}…"]


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(row[name]) for name in columns])
    yield written.getvalue().removesuffix("\n")
