"""The page on what lies on disk, from the modules that write it."""

import dataclasses
import json

from docs.generators.docstrings import cell, named, split

from omnigraph.model.change import Changes, TypeChange
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.model.intent import Completed, Intent, Writer
from omnigraph.storage import paths
from omnigraph.storage.records import read
from omnigraph.transaction.options import NO_OPTIONS, options_document

_ULID = "01J9ZK3V{:0>18}"
_TABLE = Pin("nodes/" + _ULID.format("T"), 14_030_520_312_349_482_121, rows=2, bytes=1_342)
_FOOTPRINT = Footprint({"node:Person": TypeFootprint(writes=frozenset({7}))})
_CHANGES = Changes({"node:Person": TypeChange(1, 0, 0, ("Ada",), (), ())})
_RECORD = Record(
    commit=_ULID.format("C2"),
    branch="main",
    number=2,
    kind=CommitKind.MUTATION,
    parent=_ULID.format("C1"),
    schema="6f0c…",
    tables={"node:Person": _TABLE},
    created_at_us=1_760_000_000_000_000,
    actor="ada",
    changes=_CHANGES,
    footprint=_FOOTPRINT,
    born=1,
)
_INTENT = Intent(
    id=_ULID.format("N"),
    kind=CommitKind.LOAD,
    branch="main",
    base_number=2,
    base_commit=_RECORD.commit,
    actor="ada",
    writer=Writer("host", 4711, "…"),
    tables={"node:Person": _TABLE},
    created_at_us=_RECORD.created_at_us,
)
_COMPLETED = Completed(
    intent=_INTENT.id,
    schema=_RECORD.schema,
    tables={"node:Person": dataclasses.replace(_TABLE, version=9_811_003_004_400_310_022, rows=3)},
    removed=(),
    footprint=_FOOTPRINT,
    changes=_CHANGES,
    merged_parent=None,
    notes={},
    options=options_document(NO_OPTIONS),
)


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    parts = [
        "# Formats on disk",
        "This page is generated from the code that writes the files; change that, then run `make docs`. What lies "
        "where, and why, is in [the architecture](../architecture.md#what-lies-on-disk).",
        f"The format of a graph is **{read.FORMAT}**. A release reads every format up to its own, and refuses newer "
        "ones with the advice to upgrade. Documents are JSON in UTF-8; members that say nothing are left out. Numbers "
        "of table versions exceed 63 bits and are texts.",
        f"## The stamp: `{paths.STAMP}`",
        _document(read.stamp_bytes(read.Stamp(read.FORMAT, _ULID.format("G")))),
        f"## A log entry: `{paths.LOGS}{{branch}}/{{entry}}.json`",
        "Put once, only if absent. `{entry}` counts down from the largest number, so that a listing gives the newest "
        "first. Where a graph has many types, most entries hold `tables_since` instead of `tables`: what changed since "
        "an earlier entry's whole map. `sum` is a checksum (BLAKE2b, 8 bytes) of everything before it; entries without "
        "one are read as they are.",
        _document(read.record_bytes(_RECORD)),
        _fields(Record, created_at_us="created_at"),
        "A table version:",
        _fields(Pin),
        "Kinds of entries: " + ", ".join(f"`{kind.value}`" for kind in CommitKind) + ".",
        "Token sets of footprints are base64 of sorted big-endian 64-bit hashes.",
        f"## An intent: `{paths.RECOVERY}{{ulid}}.json`",
        "Put by large writes before their first effect, and deleted after their entry is put.",
        _document(read.intent_bytes(_INTENT)),
        _fields(Intent, id="intent", created_at_us="created_at", pause_s="asks_s"),
        "Once everything is staged, a second document holds all that is needed to publish it, whoever does:",
        _document(read.completed_bytes(_COMPLETED)),
        _fields(Completed, options="*the other members*"),
        f"## Change files: `{paths.CHANGES}{{ulid}}.arrow`",
        "The ids of a change set that is too large for its record: an Arrow file with the columns `type_key`, `op` "
        "(`insert`, `update`, `delete`) and `id`.",
        "## Tables: `nodes/{ulid}/`, `edges/{ulid}/`",
        "Lance tables, one for the lifetime of a type. Columns are `id`, for edges also `src` and `dst`, and the "
        "properties. Only the detached versions that log entries name hold data; the first version is empty.",
    ]
    return "\n\n".join(parts) + "\n"


def _document(body: bytes) -> str:
    return "```text\n" + json.dumps(json.loads(body), indent=2, ensure_ascii=False) + "\n```"


def _fields(kind: type, **on_disk: str) -> str:
    """The members of a document, by the names they have there."""
    items = named(split(kind.__doc__)[1]["Attributes"])
    rows = [f"| `{on_disk.get(name, name)}` | {cell(text)} |" for name, text in items]
    return "\n".join(["| member | what it is |", "|---|---|", *rows])
