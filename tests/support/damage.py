"""Which file holds what, and damage to files: what a disk, or a person, does to them."""

import json
import os
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.storage import paths
from omnigraph.storage.tables.fragments import stored_fragments


def data_file(graph: Graph, number: int, type_key: str = "node:Person") -> str:
    """The data file that an entry of main brought, under the folder of tables."""
    before, after = (
        {each.key for each in stored_fragments(graph.snapshot(number=at)._pinned.table(type_key))}
        for at in (number - 1, number)
    )
    ((name,),) = after - before
    return f"{graph.snapshot(number=number).record.tables[type_key].table}/data/{name}"


def manifest(graph: Graph, number: int, type_key: str = "node:Person") -> str:
    """The file of the version that an entry of main names."""
    pin = graph.snapshot(number=number).record.tables[type_key]
    return f"{pin.table}/_versions/d{pin.version}.manifest"


def log_entry(root: Path, number: int, branch: str = "main") -> Path:
    """The file of an entry."""
    return root / paths.log_folder(branch) / f"{2**64 - 1 - number:020d}.json"


def cut(path: Path) -> None:
    """Half of it is gone."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path, *, at: int = 8) -> None:
    """One bit of it is another."""
    body = bytearray(path.read_bytes())
    body[at] ^= 0x10
    path.write_bytes(bytes(body))


def empty(path: Path) -> None:
    """All of it is gone, and the file is there."""
    os.truncate(path, 0)


def change_a_letter(path: Path) -> None:
    """One bit, in the name of a type: what is left can be read as well as before."""
    path.write_bytes(path.read_bytes().replace(b'"node:Person":{"table', b'"node:Qerson":{"table'))
    json.loads(path.read_bytes())
