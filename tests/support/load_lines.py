"""What the suites of loads are about: a schema of every kind of rule, lines for it, and what came of them."""

import json
from collections.abc import Callable
from typing import Any

from omnigraph import Graph
from omnigraph.errors import GraphError

SCHEMA = """
node Person {
  name: String @key  age: I32?  email: String? @unique  first: String?  born: Date?
  level: enum(low, high)?
  @unique(first, born)  @range(age, 0..150)  @check(name, "^[A-Za-z0-9]+$")
}
node Note { text: String  size: U64?  seen: DateTime?  tags: [String]?  at: Vector(2)?  raw: Blob? }
node Pair { a: String  b: I32  @key(a, b) }
edge Knows: Person -> Person { since: Date? @unique(src, dst) }
edge Likes: Person -> Person
edge Owns: Person -> Note @card(1..2)
"""
ADA, BOB = '{"type":"Person","data":{"name":"Ada","email":"a@x"}}', '{"type":"Person","data":{"name":"Bob"}}'
KNOWS = '{"edge":"Knows","from":"Ada","to":"Bob","data":{"id":"k1","since":"2020-01-31"}}'


def person(name: str, **data: object) -> str:
    """A line of a person."""
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def edge(kind: str, source: str, target: str, **data: object) -> str:
    """A line of an edge."""
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


def note(id_: str, text: str) -> str:
    """A line of a note."""
    return json.dumps({"type": "Note", "data": {"id": id_, "text": text}})


def rows(graph: Graph, kind: str, branch: str = "main") -> list[dict[str, Any]]:
    """The rows of a type, by id."""
    return sorted(graph.export_arrow(kind, branch=branch).read_all().to_pylist(), key=lambda row: str(row["id"]))


def ids(graph: Graph, kind: str, branch: str = "main") -> list[str]:
    """The ids of a type, in order."""
    return [str(row["id"]) for row in rows(graph, kind, branch)]


def head(graph: Graph, branch: str = "main") -> str:
    """The head commit of a branch."""
    return graph.snapshot(branch=branch).commit


def refused(graph: Graph, load: Callable[[], object], error: type[GraphError], message: str) -> GraphError:
    """What a load is refused with; it has left nothing.

    Raises:
        AssertionError: it was not refused, or left something.
    """
    before = head(graph), sorted(graph.branches)
    try:
        load()
    except error as told:
        assert message in str(told), str(told)
        assert (head(graph), sorted(graph.branches)) == before
        return told
    raise AssertionError(f"it was not refused with {message!r}")
