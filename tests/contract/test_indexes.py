"""Declared indexes: which are built, when, over what; and that none of them, nor compaction, changes an answer."""

import random  # noqa: TID251  (seeded: every run does the same)
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, small_schema, store_graph
from tests.support.random_queries import RandomGraphs, RandomQueries
from tests.support.result_agreement import disagreement

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.errors import ParseError
from omnigraph.execution.adjacency_cache import ExpandStrategy
from omnigraph.execution.engine import QueryEngine
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import CompiledQuery, bind_params, compile_uncached
from omnigraph.language.query.params import Params
from omnigraph.language.schema import accept
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest
from omnigraph.storage.tables.declared import declared_indexes
from omnigraph.storage.tables.table import BuiltIndex
from omnigraph.transaction.optimize import optimize

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

QUIET = OpenOptions(durability="process", auto_compact=False)
SCHEMA = """
node Book {
  isbn: String @key
  title: String @index
  genre: enum(fiction, science) @index
  pages: I32? @index
  rare: Bool? @index
  printed: Date? @index
  code: String? @unique
  shelf: String?
  tags: [String]?
  meaning: Vector(4)? @index
  @index(title, pages)
}
edge Cites: Book -> Book { page: I32? @index }
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=QUIET) as made:
        yield made


def book(number: int, *, meaning: bool = True) -> dict[str, object]:
    return {
        "isbn": f"b{number}",
        "title": f"on the number {number}",
        "genre": "fiction" if number % 2 else "science",
        "pages": number % 50,
        "code": f"c{number}",
        "meaning": [float(number), 1.0, 0.5, float(number % 7)] if meaning else None,
    }


def built(graph: Graph, type_key: str = "node:Book", branch: str = "main") -> dict[str, BuiltIndex]:
    return {index.name: index for index in graph.snapshot(branch=branch)._pinned.table(type_key).indexes()}


def test_the_kind_of_an_index_follows_the_type_of_its_property() -> None:
    schema = accept(SCHEMA)
    kinds: dict[str, list[str]] = {}
    for spec in declared_indexes(schema.nodes[0]):
        kinds.setdefault(spec.column, []).append(spec.kind.value)
    assert kinds == {
        "id": ["BTREE"],
        "isbn": ["BTREE", "NGRAM"],
        "title": ["BTREE", "NGRAM"],
        "genre": ["BITMAP"],
        "pages": ["BTREE"],
        "rare": ["BITMAP"],
        "printed": ["BTREE"],
        "code": ["BTREE"],
        "meaning": ["IVF_FLAT"],
    }


def test_edges_have_indexes_on_their_ids_and_both_ends_and_no_others() -> None:
    schema = accept(SCHEMA)
    assert [(spec.column, spec.kind) for spec in declared_indexes(schema.edges[0])] == [
        ("id", "BTREE"),
        ("src", "BTREE"),
        ("dst", "BTREE"),
    ]


def test_writes_build_no_index_and_optimize_builds_all_in_one_commit(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(300)]})
    graph.write(edges={"Cites": [{"from": "b1", "to": "b2"}]})
    assert built(graph) == {}
    before = graph.snapshot().number
    report = graph.optimize()
    assert graph.snapshot().number == before + 1
    indexes = built(graph)
    assert indexes.keys() == {spec.name for spec in declared_indexes(graph.schema().nodes[0])}
    assert {(index.segments, index.rows, index.rows_missing) for index in indexes.values()} == {(1, 300, 0)}
    assert built(graph, "edge:Cites").keys() == {"id_btree", "src_btree", "dst_btree"}
    assert report.pending == {}


def test_an_index_that_exists_is_extended_to_new_rows_and_folded_when_it_has_many_parts(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(40)]})
    graph.optimize()
    with patch.object(limits, "SMALL_FRAGMENT_ROWS_MAX", 1), patch.object(limits, "INDEX_REBUILT_ROWS_MAX", 1):
        for step in range(1, limits.INDEX_SEGMENTS_MAX):
            graph.write({"Book": [book(1000 + step)]})
            graph.optimize()
            index = built(graph)["title_ngram"]
            assert (index.segments, index.rows_missing) == (step + 1, 0)
        graph.write({"Book": [book(2000)]})
        graph.optimize()
    assert {(index.segments, index.rows_missing) for name, index in built(graph).items()} == {(1, 0)}


def test_an_empty_table_and_too_few_vectors_leave_indexes_pending_with_reasons(graph: Graph) -> None:
    everything = {spec.column for spec in declared_indexes(graph.schema().nodes[0])}
    report = graph.optimize()
    assert report.commit is None
    assert {each.property for each in report.pending["node:Book"]} == everything
    assert {each.reason for each in report.pending["node:Book"]} == {"the table is empty"}
    graph.write({"Book": [book(number, meaning=number < 3) for number in range(300)]})
    report = graph.optimize()
    (pending,) = report.pending["node:Book"]
    assert (pending.property, pending.reason) == ("meaning", "3 vectors are too few to learn from; 256 are enough")
    assert built(graph).keys() == {spec.name for spec in declared_indexes(graph.schema().nodes[0])} - {
        "meaning_ivf_flat"
    }
    # What cannot be built is no reason to do anything again; once it can, it is built.
    assert graph.optimize().commit is None
    graph.write({"Book": [book(number) for number in range(300)]}, mode="merge")
    assert graph.optimize().pending == {"edge:Cites": report.pending["edge:Cites"]}
    assert built(graph)["meaning_ivf_flat"].rows == 300


def test_an_index_goes_with_a_property_that_is_renamed(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(5)]})
    graph.optimize()
    renamed = SCHEMA.replace("title: String @index", 'name: String @rename_from("title") @index').replace(
        "@index(title, pages)", "@index(name, pages)"
    )
    graph.schema_apply(renamed)
    assert graph.optimize().commit is None
    assert built(graph)["title_btree"].columns == ("name",)


def test_an_index_declared_after_the_rows_were_written_is_built(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(5)]})
    graph.optimize()
    graph.schema_apply(SCHEMA.replace("shelf: String?", "shelf: String? @index"))
    graph.optimize()
    assert built(graph)["shelf_btree"].rows_missing == 0


def test_an_index_that_is_no_longer_declared_is_left_out(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(5)]})
    graph.optimize()
    graph.schema_apply(SCHEMA.replace("pages: I32? @index", "pages: I32?"), validated=True)
    before = built(graph).keys()
    assert "pages_btree" in before
    assert graph.optimize().commit is not None
    assert built(graph).keys() == before - {"pages_btree"}
    assert graph.optimize().commit is None


def test_indexes_follow_the_type_that_a_property_becomes(graph: Graph) -> None:
    graph.write({"Book": [book(number) for number in range(5)]})
    graph.optimize()
    wider = SCHEMA.replace("pages: I32?", "pages: I64?").replace("genre: enum(fiction, science)", "genre: String")
    graph.schema_apply(wider, validated=True)
    (books,) = [each for each in graph.optimize().tables if each.type_key == "node:Book"]
    assert set(books.indexes) == {"pages_btree", "genre_btree", "genre_ngram"}
    assert "genre_bitmap" not in built(graph)
    assert built(graph)["pages_btree"].rows_missing == 0


def test_indexes_are_built_on_any_branch_and_stay_there(graph: Graph) -> None:
    graph.write({"Book": [book(1)]})
    graph.branches.create("side")
    graph.write({"Book": [book(2)]}, branch="side")
    assert graph.optimize("side").commit is not None
    assert built(graph, branch="side")["id_btree"].rows == 2
    assert built(graph) == {}


# --- words ------------------------------------------------------------------------------------------------------------

FOUND = (
    'query q() { match { $b: Book  search($b.title, "number7 number8") } return { $b.isbn as b } order { $b.isbn } }'
)


def titled(first: int, count: int) -> list[dict[str, object]]:
    return [book(number) | {"title": f"on number{number}"} for number in range(first, first + count)]


def word_files(root: Path) -> list[Path]:
    return sorted(each for each in (root / "__derived").rglob("*") if each.is_file() and "words" in each.parts)


def test_the_words_of_many_texts_are_indexed_by_optimize_for_the_next_process(tmp_path: Path) -> None:
    with patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100):
        with omnigraph.init(tmp_path / "many", SCHEMA, options=QUIET) as graph:
            graph.write({"Book": titled(0, 150)})
            graph.write({"Book": titled(150, 150)})
            (books,) = [each for each in graph.optimize().tables if each.type_key == "node:Book"]
            assert "title_words" in books.indexes
            assert not {"code_words", "isbn_words", "shelf_words"} & set(books.indexes), "texts with an @index alone"
            assert (len(word_files(tmp_path / "many")), books.pending) == (1, ())
            again = graph.optimize()
            assert again.commit is None
            assert not [table for table in again.tables if table.indexes]
        with (
            omnigraph.open(tmp_path / "many", options=QUIET) as graph,
            patch("omnigraph.execution.column.fragment_rows", side_effect=AssertionError("texts were read")),
        ):
            assert "$b.title: words are found through an index kept beside the graph" in graph.explain(FOUND)
            counted = FOUND.replace("$b.isbn as b } order { $b.isbn }", "count(*) as n }")
            assert graph.query(counted).to_pylist() == [{"n": 2}]


def test_where_optimize_moved_rows_the_index_over_their_words_is_made_for_where_they_are(tmp_path: Path) -> None:
    with (
        patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100),
        omnigraph.init(tmp_path / "moved", SCHEMA, options=QUIET) as graph,
    ):
        graph.write({"Book": titled(0, 150)})
        before = graph.query(FOUND).to_pylist()
        graph.write({"Book": [book(7) | {"title": "nothing"}, book(900) | {"title": "of number7"}]}, mode="merge")
        changed = graph.query(FOUND).to_pylist()
        files = word_files(tmp_path / "moved")
        graph.optimize()
        assert set(word_files(tmp_path / "moved")) > set(files)
        assert graph.query(FOUND).to_pylist() == changed == [{"b": "b8"}, {"b": "b900"}] != before
    with omnigraph.open(tmp_path / "moved", options=QUIET) as graph:
        assert graph.query(FOUND).to_pylist() == changed


def test_words_that_do_not_fit_into_memory_are_pending_with_the_reason(tmp_path: Path) -> None:
    with (
        patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100),
        omnigraph.init(tmp_path / "large", SCHEMA, options=OpenOptions(cache_bytes=1_000)) as graph,
    ):
        graph.write({"Book": titled(0, 300)})
        report = graph.optimize()
        assert report.commit is not None, "all else was done"
        (pending,) = report.pending["node:Book"]
        assert pending.property == "title"
        assert pending.reason.startswith("its words cannot be indexed: ")
        assert word_files(tmp_path / "large") == []


def _queries(draw: random.Random, count: int, schema: Schema) -> Iterator[tuple[CompiledQuery, str, Params]]:
    while count:
        queries = RandomQueries(draw)
        text = queries.text()
        try:
            compiled = compile_uncached(text, schema, None, digest(schema))
        except ParseError:
            continue
        yield compiled, text, bind_params(compiled, queries.params())
        count -= 1


@pytest.mark.parametrize("seed", [3, 11])
def test_every_answer_is_the_same_before_and_after(tmp_path: Path, seed: int) -> None:
    schema, draw = small_schema(), random.Random(seed)
    plain = PlainGraph(schema)
    while len(plain.nodes.get("Person", [])) < 5 or len(plain.edges["Knows"]) < 5:
        plain = RandomGraphs(draw, schema).graph()
    stored = store_graph(str(tmp_path / "graph"), schema)
    for part in range(3):  # each type in three fragments, one of them with a row that is replaced
        third = {key: rows.filter(np.arange(len(rows)) % 3 == part) for key, rows in plain.tables().items()}
        stored.change(third, {})
    again = plain.tables()["node:Person"].slice(0, 1)
    stored.change({"node:Person": again}, {})
    asked = list(_queries(draw, 40, schema))

    def wrong() -> list[str]:
        engine = QueryEngine(stored.parts.tables, strategy=ExpandStrategy.LOOKED_UP)
        found = []
        for compiled, text, params in asked:
            read = compiled.bound.body
            assert isinstance(read, Read)
            result = engine.run(stored.snapshot(), compiled, params, schema=schema)
            fault = disagreement(read, result, answer(read, plain, params.values))
            if fault is not None:
                found.append(f"{fault}\n{text}")
        return found

    with patch.object(limits, "READ_WHOLE_ROWS_MAX", 1), patch.object(limits, "LOOKUP_ROWS_MAX", 3):
        assert wrong() == []
        done = optimize(stored.parts, MAIN, lambda _: schema)
        assert done.entry is not None
        assert {table.fragments_removed for table in done.tables if table.changed} >= {3}
        assert wrong() == []
