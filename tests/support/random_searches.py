"""Random documents and searches in them, the same for the same seed."""

import random  # noqa: TID251  (only its class: the caller brings a seeded one)
from typing import Any

from tests.support.graphs import PlainGraph

from omnigraph.language.schema import accept

SCHEMA = accept("""
node Doc {
  slug: String @key  title: String? @index @analyzer(simple)  body: String? @index  vec: Vector(2)? @index  year: I32?
}
node Author { name: String @key  bio: String? }
edge Cites: Doc -> Doc
edge Wrote: Author -> Doc
""")
WORDS = [
    *(
        "fox",
        "Fox",
        "foxes",
        "dog",
        "lazy",
        "quick",
        "quickly",
        "straße",
        "ÉTÉ",
        "e\u0301te\u0301",
        "ete",
        "12",
        "日本",
    ),
    *("a", "the", "The", "of"),
]
PHRASES = ["fox the dog", "fox of dog", "fox dog", "the quick dog", "quick a dog"]
MARKS = [" ", " ", " ", ", ", "-", " — ", "_", "…\n"]


class RandomSearches:
    """Random documents and questions, the same for the same seed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def text(self, most: int = 7) -> str:
        return "".join(
            self.draw.choice(WORDS + PHRASES) + self.draw.choice(MARKS) for _ in range(self.draw.randint(0, most))
        )

    def maybe(self, value: object) -> object:
        return None if self.draw.random() < 0.15 else value

    def vector(self) -> list[float]:
        # Few values, exact in binary: many distances are equal, and equal however they are computed.
        return [self.draw.randint(-2, 2) / 2 for _ in range(2)]

    def doc(self, slug: str) -> dict[str, Any]:
        return {
            "id": slug,
            "slug": slug,
            "title": self.maybe(self.text(3)),
            "body": self.maybe(self.text()),
            "vec": self.maybe(self.vector()),
            "year": self.maybe(self.draw.randint(0, 5)),
        }

    def graph(self) -> PlainGraph:
        docs = [self.doc(f"d{number:02}") for number in range(self.draw.randint(0, 14))]
        authors = [{"id": name, "name": name, "bio": self.maybe(self.text())} for name in ("ann", "bob")]
        return PlainGraph(SCHEMA, {"Doc": docs, "Author": authors}, self.edges(docs, authors))

    def edges(self, docs: list[dict[str, Any]], authors: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        ends = [doc["id"] for doc in docs]
        if not ends:
            return {"Cites": [], "Wrote": []}
        writers = [author["id"] for author in authors]
        return {
            "Cites": [self.edge(f"c{each}", ends, ends) for each in range(18)],
            "Wrote": [self.edge(f"w{each}", writers, ends) for each in range(8)],
        }

    def edge(self, id_: str, sources: list[str], targets: list[str]) -> dict[str, Any]:
        return {"id": id_, "src": self.draw.choice(sources), "dst": self.draw.choice(targets)}

    def quoted(self) -> str:
        if self.draw.random() < 0.4:
            return f'"{self.draw.choice(PHRASES)}"'
        return '"' + " ".join(self.draw.choice(WORDS) for _ in range(self.draw.randint(1, 3))) + '"'

    def match(self, variable: str) -> str:
        field = f"${variable}.{self.draw.choice(['title', 'body'])}"
        function = self.draw.choice(["search", "fuzzy", "match_text"])
        edits = self.draw.choice(["", ", 1", ", 0"]) if function == "fuzzy" else ""
        return f"{function}({field}, {self.quoted()}{edits})"

    def arm(self, variable: str) -> str:
        if self.draw.random() < 0.5:
            return self.nearest(variable)
        return f"bm25(${variable}.{self.draw.choice(['title', 'body'])}, {self.quoted()})"

    def nearest(self, variable: str) -> str:
        return f"nearest(${variable}.vec, {self.draw.choice(['$v', '$w', '[0.5, 1.0]'])})"

    def score(self, variable: str) -> str:
        if self.draw.random() < 0.4:
            k = self.draw.choice(["", ", 1", ", $k"])
            return f"rrf({self.arm(variable)}, {self.arm(variable)}{k})"
        return self.arm(variable)

    def query(self) -> str:
        pattern, variables = self.draw.choice(
            [
                ("$d: Doc", ["d"]),
                ("$d: Doc", ["d"]),
                ("$d: Doc $d cites $e", ["d", "e"]),
                ("$a: Author $a wrote $d", ["d"]),
                ('$a: Author { name: "ann" } $a wrote $d $d cites{1,2} $e', ["d", "e"]),
                ("$d: Doc $d $c: cites $e", ["d", "e"]),
            ]
        )
        ranked = self.draw.choice(variables)
        clauses = [pattern, *self.draw.sample(self.clauses(variables), self.draw.randint(0, 2))]
        ordering, window = self.order(ranked)
        columns = ", ".join(f"${each}.slug as {each}" for each in variables)
        scores = "".join(f", {self.score(self.draw.choice(variables))} as s{n}" for n in range(self.draw.randint(0, 2)))
        if ordering and self.draw.random() < 0.5:
            scores += f", {ordering[0]} as o"
        order = f"order {{ {', '.join(ordering)} }}" if ordering else ""
        body = f"match {{ {' '.join(clauses)} }} return {{ {columns}{scores} }} {order} {window}"
        return f"query q($v: Vector(2), $w: Vector(2)?, $k: I64, $n: String?) {{ {body} }}"

    def clauses(self, variables: list[str]) -> list[str]:
        one = self.draw.choice(variables)
        return [
            self.match(one),
            self.match(self.draw.choice(variables)),
            f"${one}.year > 1",
            f"bm25(${one}.body, {self.quoted()}) > 0.6",
            f"not {{ ${one} cites $z {self.match('z')} }}",
            f"not {{ {self.match(one)} }}",
            f"search(${one}.title, $n)",
            f"{self.nearest(one)} <= 1.0",
        ]

    def order(self, variable: str) -> tuple[list[str], str]:
        window = f"limit {self.draw.choice([1, 2, 3, 30])}"
        if self.draw.random() < 0.2:
            return [], ""
        second = self.draw.choice([[], [], [f"${variable}.year desc"]])
        return [self.score(variable), *second], window

    def params(self) -> dict[str, object]:
        given: dict[str, object] = {"v": self.vector(), "k": self.draw.randint(1, 5)}
        if self.draw.random() < 0.5:
            given["w"] = self.vector()
        if self.draw.random() < 0.5:
            given["n"] = self.draw.choice(WORDS)
        return given
