"""Indexes over words beside the graph: read by other processes instead of the texts, and trusted by none."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.errors import LimitError
from omnigraph.execution.search.index_files import TextIndexFiles, serialize
from omnigraph.failpoints import Crash
from omnigraph.storage.derived import version_of
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import CountingStore, FaultyStore

WORDS = (
    'search($d.body, "word7 word300")',
    'match_text($d.body, "word7 word7")',
    'fuzzy($d.body, "word39", 1)',
    'bm25($d.body, "word7") > 4.5',
)


def counts(graph: Graph) -> list[int]:
    texts = (f"query q() {{ match {{ $d: Doc {each} }} return {{ count(*) as n }} }}" for each in WORDS)
    return [graph.query(each, engine="local").to_arrow().column("n")[0].as_py() for each in texts]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "__derived" / "words").rglob("*") if path.is_file())


@pytest.fixture
def searched(tmp_path: Path) -> Iterator[Path]:
    """A graph whose texts were searched once, so that there is an index over their words beside it."""
    rows = [{"slug": f"d{each:04}", "body": f"word{each % 9} word7 Ünï{each % 3}" if each % 5 else None}
            for each in range(600)]  # fmt: skip
    with patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100):
        with omnigraph.init(tmp_path / "texts", "node Doc { slug: String @key  body: String? }") as graph:
            graph.write({"Doc": rows})
            assert files(tmp_path / "texts") == []
            counts(graph)
        assert len(files(tmp_path / "texts")) == 1
        yield tmp_path / "texts"


def test_an_index_over_words_is_read_by_the_next_process_instead_of_the_texts(searched: Path) -> None:
    text = f"query q() {{ match {{ $d: Doc {WORDS[0]} }} return {{ count(*) as n }} }}"
    with omnigraph.open(searched, read_only=True) as graph:
        assert "$d.body: words are found through an index kept beside the graph, over all texts (600" in graph.explain(
            text
        )
        with patch("omnigraph.execution.column.fragment_rows", side_effect=AssertionError("texts were read")):
            found = counts(graph)
        assert "words are found through an index in memory" in graph.explain(text)
    shutil.rmtree(searched / "__derived")
    with omnigraph.open(searched, read_only=True) as graph:
        assert "words are found through an index made from the texts" in graph.explain(text)
        assert counts(graph) == found
    assert files(searched) == [], "who may only read writes none"


def test_texts_larger_than_the_memory_are_searched_by_their_words(tmp_path: Path) -> None:
    long = " ".join(["internationalisation antidisestablishmentarianism"] * 40)
    bodies = [f"{long} word{each % 9} word7" if each % 5 else None for each in range(400)]
    rows = [{"slug": f"d{each:04}", "body": body} for each, body in enumerate(bodies)]
    schema = "node Doc { slug: String @key  body: String? }"
    with omnigraph.init(tmp_path / "long", schema) as ample:
        ample.write({"Doc": rows[:300]})
        ample.write({"Doc": rows[300:]})
        ample.mutate('query q() { delete Doc where slug = "d0007" }')
        expected = counts(ample)
    with (
        patch.object(limits, "SEARCH_TEXTS_AT_ONCE", 150),
        omnigraph.open(tmp_path / "long", options=OpenOptions(cache_bytes=500_000)) as scarce_one,
    ):
        assert counts(scarce_one) == expected
        contains = 'query q() { match { $d: Doc  $d.body contains "word3" } return { count(*) as n } }'
        with pytest.raises(LimitError) as refused:
            scarce_one.query(contains, engine="local")
        assert refused.value.code == "column_too_large", "the texts themselves did not fit"
    with omnigraph.open(tmp_path / "long", options=OpenOptions(cache_bytes=50_000)) as tiny:
        with pytest.raises(LimitError) as refused:
            counts(tiny)
        assert refused.value.code == "column_too_large"


def test_few_texts_are_indexed_without_asking_the_store_for_a_file() -> None:
    store = CountingStore(MemoryStore())
    with omnigraph.init(store, "node Doc { slug: String @key  body: String? }") as graph:
        graph.write({"Doc": [{"slug": f"d{each}", "body": "word7"} for each in range(50)]})
        assert counts(graph)[0] == 50
        graph.explain(f"query q() {{ match {{ $d: Doc {WORDS[0]} }} return {{ count(*) as n }} }}")
    assert [path for _, path in store.requests() if path.startswith("__derived/")] == []


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "of another format"])
def test_no_answer_depends_on_a_damaged_index_over_words(searched: Path, damage: str) -> None:
    [file] = files(searched)
    with omnigraph.open(searched) as graph:
        expected = counts(graph)
    body = file.read_bytes()
    changed = body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]
    other = body.replace(b'"format":3', b'"format":9')
    assert other != body
    file.write_bytes(
        {"cut": body[: len(body) // 2], "changed": changed, "emptied": b"", "of another format": other}[damage]
    )

    with omnigraph.open(searched, read_only=True) as graph:
        assert counts(graph) == expected


def test_an_index_over_words_with_any_byte_changed_is_no_index(searched: Path) -> None:
    [file] = files(searched)
    body = file.read_bytes()
    read = TextIndexFiles(LocalStore(searched), read_only=True)._read
    path = file.relative_to(searched).as_posix()
    assert read(path) is not None
    for place in [*range(min(2_000, len(body))), *range(2_000, len(body), 97)]:
        file.write_bytes(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])
        found = read(path)
        assert found is None or serialize(found) == body, place


def test_rows_that_came_changed_and_went_since_are_found_as_they_are(searched: Path) -> None:
    with omnigraph.open(searched) as graph:
        graph.write({"Doc": [{"slug": f"n{each}", "body": "word7 word7"} for each in range(20)]})
        graph.mutate('query q() { delete Doc where slug = "d0007" }')
        graph.mutate('query q() { update Doc set { body: "word39" } where slug = "d0008" }')
        expected = counts(graph)
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected
        graph.optimize()
        assert counts(graph) == expected
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected, "rows lie elsewhere now; the index is not taken for theirs"
    shutil.rmtree(searched / "__derived")
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected


def test_where_rows_lie_elsewhere_than_in_any_file_another_one_is_kept(searched: Path) -> None:
    with omnigraph.open(searched) as graph:
        graph.write({"Doc": [{"slug": "one more", "body": "word7"}]})
        graph.mutate('query q() { delete Doc where slug = "d0007" }')
        expected = counts(graph)
        assert len(files(searched)) == 1, "what has hardly changed is not written again"
        graph.optimize()
        assert counts(graph) == expected
        pin = graph.snapshot().record.tables["node:Doc"]
    assert (pin.table, pin.version) in {version_of(file.relative_to(searched).as_posix()) for file in files(searched)}


def test_an_index_over_words_goes_with_the_version_it_was_made_for(searched: Path) -> None:
    [file] = files(searched)
    options = OpenOptions(protection_s=0)
    with omnigraph.open(searched, options=options) as graph:
        graph.write({"Doc": [{"slug": "only", "body": "word7"}]}, mode="overwrite")
        assert version_of(file.relative_to(searched).as_posix()) is not None
        graph.prune(keep=1, now=True)
        graph.sweep(older_than=0)
        assert files(searched) == []


@pytest.mark.parametrize("fault", [Fault.FAIL_BEFORE, Fault.LOSE_ANSWER, Fault.NO_SPACE])
@pytest.mark.parametrize("kind", [RequestKind.PUT, RequestKind.LIST])
def test_upkeep_is_done_where_the_index_over_words_cannot_be_kept(fault: Fault, kind: RequestKind) -> None:
    store = FaultyStore(MemoryStore())
    rows = [{"slug": f"d{each:04}", "body": f"word{each % 9} word7"} for each in range(200)]
    with (
        patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100),
        omnigraph.init(store, "node Doc { slug: String @key  body: String? @index }") as graph,
    ):
        graph.write({"Doc": rows})
        store.arm(fault, times=99, kind=kind, path_part="__derived/words")
        assert graph.optimize().commit is not None
        found = counts(graph)
        store.disarm()
        assert found[0] == 200
        assert counts(graph) == found
        assert graph.optimize().commit is None


def test_a_death_after_upkeep_and_before_the_index_over_words_costs_nothing_but_time(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path / "graph", durability=Durability.PROCESS))
    rows = [{"slug": f"d{each:04}", "body": f"word{each % 9} word7"} for each in range(200)]
    with patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100):
        graph = omnigraph.init(store, "node Doc { slug: String @key  body: String? @index }")
        graph.write({"Doc": rows})
        store.arm(Fault.CRASH_BEFORE, kind=RequestKind.PUT, path_part="__derived/words")
        with pytest.raises(Crash):
            graph.optimize()
        with omnigraph.open(tmp_path / "graph") as after:
            assert after.commits.list()[0].kind == "index"
            (docs,) = after.optimize().tables
            assert docs.indexes == ("body_words",), "the next pass sees to it"
            assert counts(after)[0] == 200
