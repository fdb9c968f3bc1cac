"""A library for the suites that an open graph and a served one both pass: what is in it, and what is asked of it."""

from pathlib import Path
from typing import Any

import omnigraph

SCHEMA = """\
node Author { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32?  cover: Blob?  mood: Vector(2)?  read: DateTime?
            @range(pages, 1..5000) }
edge Wrote: Author -> Book { year: I32? }
"""
ROWS = b"""\
{"type":"Author","data":{"name":"Le Guin","born":"1929-10-21"}}
{"type":"Author","data":{"name":"Butler"}}
{"type":"Book","data":{"isbn":"0-1","title":"The Dispossessed","pages":341,"mood":[0.5,1.5],"cover":"base64:aGVsbG8="}}
{"type":"Book","data":{"isbn":"0-2","title":"Kindred","read":"2024-05-06T07:08:09Z","cover":"base64:"}}
{"edge":"Wrote","from":"Le Guin","to":"0-1","data":{"id":"w1","year":1974}}
"""
BOOKS = """\
query books() {
  match { $b: Book }
  return { $b, $b.title, $b.pages, $b.mood, $b.read }
  order { $b.isbn }
}
"""
AUTHORS = "query authors() { match { $a: Author } return { $a.name } order { $a.name } }"
ADD = "query add($name: String) { insert Author { name: $name } }"
PAGES = 'query pages($n: I32) { update Book set { pages: $n } where isbn = "0-1" }'
LOCAL: dict[str, Any] = {"engine": "local", "format": "jsonl"}


def made_library(folder: Path) -> str:
    """The library in a folder.

    Args:
        folder (Path): where.

    Returns:
        str: its address.
    """
    address = str(folder / "library")
    with omnigraph.init(address, SCHEMA) as made:
        made.load(ROWS, mode="append", **LOCAL)
    return address
