"""Schemas as text: what is rendered says what the schema says, numbers aside."""

from pathlib import Path

import pytest

from omnigraph.errors import GraphError
from omnigraph.language.schema import accept, format, plan, render

FOLDER = Path(__file__).parents[3] / "language" / "schema"


def accepted_texts() -> list[str]:
    """The schema of every fixture that has one without a mistake."""
    found = []
    for path in sorted(FOLDER.rglob("*.txt")):
        for section in path.read_text().split("=== ")[1:]:
            head, _, text = section.partition("\n")
            if head.strip() in ("schema", "next"):
                try:
                    accept(text)
                except GraphError:
                    continue
                found.append(text)
    return found


@pytest.mark.parametrize("text", accepted_texts())
def test_a_rendered_schema_is_the_schema(text: str) -> None:
    schema = accept(text)
    rendered = render(schema)
    assert plan(schema, rendered).is_empty, rendered
    assert format(rendered) == rendered


def test_it_reads_as_a_person_would_write_it() -> None:
    text = """interface Named {
  title: String? @index
}

node Doc @description("A \\"text\\"") implements Named {
  age: I32 @default("5")
  body: String?
  kind: enum(a, b)?
  name: String @key
  vector: Vector(4)? @embed("body", model="m")
  @unique(age, kind)
  @range(age, 0..9)
}

edge Cites: Doc -> Doc @card(0..3) {
  since: I32
  @key(src, dst, since)
}
"""
    assert render(accept(text)) == text
