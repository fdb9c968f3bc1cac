"""Search, against LanceDB on the same rows: near vectors, with and without a filter, words, both; and near a node.

Documents have a vector of 384 dimensions, in clusters as those of texts are, and forty words, some much more frequent
than others. LanceDB has its default vector index, looked into as far as it must be to find what ours finds, a
full-text index and one on the filtered column. "two hops": only what is cited within two hops of a document; there the
peer is given the ids, which the graph finds for it, in an `IN` filter.

Sides take turns. Figures are medians of turns, in time that passed, with everything in memory that each side
keeps there. Recall is the share of the ten truly nearest that are among the ten found.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tests.support.graphs import numbered

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.execution.arrays import take

_DIMENSION = 384
_WORDS = 20_000
_FOUND = 10
_TURNS = 9
_QUERIES = 10
_SCHEMA = f"""
node Doc {{ slug: String @key  body: String @index  vec: Vector({_DIMENSION}) @index  year: I32 @index }}
edge Cites: Doc -> Doc
"""
_RETURN = "return { $d.slug as slug } order"

Search = Callable[[int], list[str]]


class Documents:
    """The rows, and what to ask about them."""

    def __init__(self, count: int) -> None:
        chance = np.random.default_rng(3)
        centres = chance.normal(size=(count // 200, _DIMENSION))
        vectors = centres[chance.integers(0, len(centres), count)] + 0.7 * chance.normal(size=(count, _DIMENSION))
        self.vectors: npt.NDArray[Any] = (vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float32)
        words = np.array([f"w{each}" for each in range(_WORDS)])
        share = 1 / np.arange(1, _WORDS + 1)
        chosen = chance.choice(_WORDS, size=(count, 40), p=share / share.sum())
        self.slugs = numbered("doc-", count, 6)
        self.years = chance.integers(2000, 2025, count).astype(np.int32)
        self.table = pa.table(
            {
                "slug": self.slugs,
                "body": [" ".join(each) for each in words[chosen]],
                "vec": pa.FixedSizeListArray.from_arrays(pa.array(self.vectors.ravel()), _DIMENSION),
                "year": self.years,
            }
        )
        ends = chance.integers(0, count, (count * 10, 2))
        self.cites = pa.table({"from": take(self.slugs, ends[:, 0]), "to": take(self.slugs, ends[:, 1])})
        near = chance.integers(0, count, _QUERIES)
        asked = self.vectors[near] + 0.02 * chance.normal(size=(_QUERIES, _DIMENSION))
        self.asked: list[list[float]] = asked.astype(np.float32).tolist()
        self.words = [" ".join(f"w{each}" for each in chance.integers(20, 5_000, 3)) for _ in range(_QUERIES)]
        self.starts = [str(self.slugs[int(each)]) for each in chance.integers(0, count, _QUERIES)]

    def nearest(self, query: int, where: npt.NDArray[Any] | None = None) -> set[str]:
        """The truly nearest."""
        apart = np.square(self.vectors.astype(np.float64) - self.asked[query]).sum(axis=1)
        if where is not None:
            apart[~where] = np.inf
        return {str(self.slugs[int(each)]) for each in np.argsort(apart)[:_FOUND]}


class _Ours:
    def __init__(self, folder: Path, documents: Documents) -> None:
        self._documents = documents
        self.graph = omnigraph.init(folder / "ours", _SCHEMA)
        self.graph.write({"Doc": documents.table}, {"Cites": documents.cites})
        self.graph.optimize()

    def _slugs(self, text: str, **params: object) -> list[str]:
        declared = f"$v: Vector({_DIMENSION})?, $t: String?, $s: String?"
        found = self.graph.query(f"query q({declared}) {{ {text} limit {_FOUND} }}", params).to_arrow()
        return [str(each) for each in found.column("slug").to_pylist()]

    def nearest(self, query: int) -> list[str]:
        text = f"match {{ $d: Doc }} {_RETURN} {{ nearest($d.vec, $v) }}"
        return self._slugs(text, v=self._documents.asked[query])

    def filtered(self, query: int) -> list[str]:
        text = f"match {{ $d: Doc  $d.year = 2010 }} {_RETURN} {{ nearest($d.vec, $v) }}"
        return self._slugs(text, v=self._documents.asked[query])

    def words(self, query: int) -> list[str]:
        text = f"match {{ $d: Doc }} {_RETURN} {{ bm25($d.body, $t) }}"
        return self._slugs(text, t=self._documents.words[query])

    def hybrid(self, query: int) -> list[str]:
        text = f"match {{ $d: Doc }} {_RETURN} {{ rrf(nearest($d.vec, $v), bm25($d.body, $t)) }}"
        return self._slugs(text, v=self._documents.asked[query], t=self._documents.words[query])

    def near_node(self, query: int) -> list[str]:
        text = f"match {{ $a: Doc {{ slug: $s }}  $a cites{{1,2}} $d }} {_RETURN} {{ nearest($d.vec, $v) }}"
        return self._slugs(text, v=self._documents.asked[query], s=self._documents.starts[query])

    def reached(self, query: int) -> list[str]:
        """What the peer's `IN` filter is made of."""
        text = "query q($s: String) { match { $a: Doc { slug: $s }  $a cites{1,2} $d } return { $d.slug as slug } }"
        found = self.graph.query(text, {"s": self._documents.starts[query]}).to_arrow()
        return [str(each) for each in found.column("slug").to_pylist()]


class _Theirs:
    def __init__(self, folder: Path, documents: Documents, ours: _Ours) -> None:
        self._documents = documents
        self._ours = ours
        self.cells, self.refined = 20, 10
        # Imported only when it is needed; its stubs do not matter here.
        lancedb: Any = import_module("lancedb")
        self._reranker = import_module("lancedb.rerankers").RRFReranker()
        self._table = lancedb.connect(str(folder / "theirs")).create_table("docs", documents.table)
        of = import_module("lancedb.index")
        self._table.create_index("vec", config=of.IvfPq(distance_type="l2"))
        self._table.create_index("year", config=of.BTree())
        self._table.create_index("slug", config=of.BTree())
        self._table.create_index("body", config=of.FTS())

    def tune(self, finds_enough: Callable[[], bool]) -> None:
        """Take the least effort that finds enough, or the greatest there is."""
        for self.cells in (20, 80, 320):
            for self.refined in (10, 30, 100):
                if finds_enough():
                    return

    def _near(self, query: int, where: str | None) -> list[str]:
        search = self._table.search(self._documents.asked[query], vector_column_name="vec")
        search = search.nprobes(self.cells).refine_factor(self.refined).limit(_FOUND).select(["slug", "_distance"])
        found = (search if where is None else search.where(where, prefilter=True)).to_arrow()
        return [str(each) for each in found.column("slug").to_pylist()]

    def nearest(self, query: int) -> list[str]:
        return self._near(query, None)

    def filtered(self, query: int) -> list[str]:
        return self._near(query, "year = 2010")

    def words(self, query: int) -> list[str]:
        search = (
            self._table.search(self._documents.words[query], query_type="fts").limit(_FOUND).select(["slug", "_score"])
        )
        return [str(each) for each in search.to_arrow().column("slug").to_pylist()]

    def hybrid(self, query: int) -> list[str]:
        search = self._table.search(query_type="hybrid", vector_column_name="vec")
        search = search.vector(self._documents.asked[query]).text(self._documents.words[query])
        search = (
            search.nprobes(self.cells).refine_factor(self.refined).rerank(self._reranker).limit(_FOUND).select(["slug"])
        )
        return [str(each) for each in search.to_arrow().column("slug").to_pylist()]

    def near_node(self, query: int) -> list[str]:
        listed = ",".join(f"'{each}'" for each in self._ours.reached(query))
        return self._near(query, f"slug IN ({listed})")


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        documents = Documents(scale.pick(full=100_000, quick=10_000))
        ours = _Ours(folder, documents)
        theirs = _Theirs(folder, documents, ours)
        yield alone("documents", documents.table.num_rows, "rows")
        truth = [documents.nearest(query) for query in range(_QUERIES)]
        mine = _recall(ours.nearest, truth)
        theirs.tune(lambda: _recall(theirs.nearest, truth) >= mine)
        yield alone("recall of the nearest, ours", mine, "", at_least=0.95)
        effort = f"{theirs.cells} cells, {theirs.refined} × refined"
        yield alone(f"recall of the nearest, LanceDB ({effort})", _recall(theirs.nearest, truth), "")
        of_year = [documents.nearest(query, documents.years == 2010) for query in range(_QUERIES)]
        yield alone("recall of the nearest with a filter, ours", _recall(ours.filtered, of_year), "", at_least=0.95)
        yield _figure("nearest", ours.nearest, theirs.nearest, 1.3)
        yield _figure("nearest with a filter (one row in 25)", ours.filtered, theirs.filtered, 1.3)
        yield _figure("words, by BM25", ours.words, theirs.words, 1.3)
        yield _figure("both, fused", ours.hybrid, theirs.hybrid, 1.3)
        yield _figure("nearest within two hops", ours.near_node, theirs.near_node, 0.8)
        yield alone("kept in memory by our reads", ours.graph.stats().cache.bytes / 2**20, "MiB")
        ours.graph.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _recall(search: Search, truth: list[set[str]]) -> float:
    found = sum(len(truth[query] & set(search(query))) for query in range(_QUERIES))
    return found / sum(map(len, truth))


def _figure(work: str, ours: Search, theirs: Search, bar: float) -> Figure:
    times: dict[Search, list[float]] = {ours: [], theirs: []}
    for turn in range(_TURNS + 1):
        for side, taken in times.items():
            started = time.perf_counter()
            for query in range(_QUERIES):
                side(query)
            if turn:
                taken.append((time.perf_counter() - started) / _QUERIES * 1_000)
    mine, other = statistics.median(times[ours]), statistics.median(times[theirs])
    return compared(work, mine, "ms", against="LanceDB", other=other, at_most=bar)


if __name__ == "__main__":
    run("search", measure)
