"""A graph for trying mutations on, and what is asked of it afterwards."""

from typing import Any

import omnigraph
from omnigraph import Graph

SCHEMA = """
node Person {
  name: String @key  age: I32?  email: String? @unique  nickName: String?  level: enum(low, high)?
  @range(age, 0..150)  @check(name, "^[A-Z]")
}
node Company { name: String @key  founded: Date? }
node Note { text: String  at: DateTime?  score: F64?  small: F32?  tags: [String]?  place: Vector(2)?  data: Blob? }
node Cell { row: I64  column: String  value: F64?  @key(row, column) }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company @card(0..1)
edge Owns: Person -> Company @card(1..2)
"""


def rows(graph: Graph, type_name: str, branch: str = "main") -> list[dict[str, Any]]:
    """All entities of a type, in the order of their ids."""
    found: list[dict[str, Any]] = graph.export_arrow(type_name, branch=branch).read_all().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    """How old everybody is."""
    return {row["name"]: row["age"] for row in rows(graph, "Person", branch)}


def pairs(graph: Graph, edge: str = "Knows", branch: str = "main") -> list[tuple[str, str]]:
    """From whom to whom the edges of a type go."""
    return sorted((row["src"], row["dst"]) for row in rows(graph, edge, branch))


def counts(result: omnigraph.MutationResult) -> tuple[int, int]:
    """How many nodes and edges a mutation says it has touched."""
    return result.affected_nodes, result.affected_edges


def statements(body: str, *, ordered: bool = False) -> str:
    """Statements as a query."""
    return f"query q() {'@ordered ' if ordered else ''}{{ {body} }}"


def load(graph: Graph, *bodies: str) -> None:
    """Carry statements out, one query after the other."""
    for body in bodies:
        graph.mutate(statements(body))
