"""Log entries, on-disk version 2: as version 1, and an entry names its graph and the entry it was built on."""

from dataclasses import replace
from typing import Any

from omnigraph.model.commit import Link, Pin, Record
from omnigraph.storage.records import commit_v1

VERSION = 2


def document(
    record: Record, *, since: tuple[int, dict[str, Pin]] | None = None, known_as: str | None = None
) -> dict[str, Any]:
    """The JSON document of a record; `known_as` is the checksum by which its successor knows it, if not its own."""
    previous = record.previous
    more = {
        "format": VERSION,
        "graph": record.graph,
        "previous": None
        if previous is None
        else {"number": previous.number, "commit": previous.commit, "checksum": previous.checksum},
        "known_as": known_as,
        "times": [list(pair) for pair in record.times],
    }
    return commit_v1.document(record, since=since) | {name: value for name, value in more.items() if value}


def read(found: dict[str, Any], whole_map: commit_v1.WholeMap) -> Record:
    """The record in a document of this version."""
    previous = found.get("previous")
    return replace(
        commit_v1.read(found, whole_map),
        graph=found.get("graph", ""),
        previous=None
        if previous is None
        else Link(int(previous["number"]), str(previous["commit"]), str(previous["checksum"])),
        checksum=found.get("known_as", ""),
        times=tuple((int(number), int(at_us)) for number, at_us in found.get("times", ())),
    )
