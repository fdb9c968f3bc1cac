"""What it costs to make a query ready: parse, bind and plan, once, and again from memory.

All in processor time: compiling waits for nothing, and a busy machine must not decide whether a bar is met.
"""

import time
from collections.abc import Iterator
from functools import partial

from benchmarks.report import Figure, Scale, alone, compared, run
from benchmarks.report import seconds_each as seconds_each_of
from omnigraph.language.plan.build import build
from omnigraph.language.plan.pattern import Read
from omnigraph.language.plan.rewrite import rewrite
from omnigraph.language.query import bind_params, compile, parse
from omnigraph.language.query.bind import bind
from omnigraph.language.query.compile import compile_uncached
from omnigraph.language.schema import accept
from omnigraph.language.text import Source
from omnigraph.model.schema import Schema

seconds_each = partial(seconds_each_of, clock=time.process_time)

COMPILE_MS_MAX = 2.0
CACHED_US_MAX = 20.0

SCHEMA = """
interface Named { name: String }
node Author implements Named { name: String @key  born: Date?  bio: String?  face: Vector(8)? }
node Book { isbn: String @key  title: String @index  pages: I32?  genre: enum(fiction, science) }
node Publisher { name: String @key  city: String? }
edge Wrote: Author -> Book { year: I32? }
edge Knows: Author -> Author { since: Date? }
edge PublishedBy: Book -> Publisher
"""

TYPICAL = """
query books_of($a: String) {
  match { $w: Author { name: $a }  $w $e: wrote $b  $b.pages > 100 }
  return { $b.title as title, $e.year as year }
  order { year desc } limit 10
}
"""
EXAMPLES = {
    "a read with a traversal, a filter, an order": TYPICAL,
    "an aggregate": """
        query prolific() { match { $w: Author  $w wrote $b } return { $w.name, count($b) as n } order { n desc } }
    """,
    "a negation": "query orphans() { match { $b: Book  not { $_ wrote $b } } return { $b.isbn } }",
    "an insert": """
        query add($isbn: String, $t: String) { insert Book { isbn: $isbn, title: $t, genre: "science" } }
    """,
    "alternatives, optional, exists and a ranking": """
        query rich($q: String, $v: Vector(8), $city: String, $n: I64) {
          match {
            $w: Author
            or { $w knows $f } { $f knows{1,3} $w  $f.born > date("1900-01-01") }
            $f wrote $b
            $b publishedBy $p
            $p: Publisher { city: $city }
            optional { $w wrote $own  $own.genre = "fiction" }
            search($b.title, $q) or exists { $w knows $x  $x.name starts_with $q }
            not { $w wrote $b }
            lower($w.name) != $q and ($b.pages in [1, 2, 3] or $b.pages is null)
          }
          return distinct { $w.name as author, $b.title as title, $own.title as own, nearest($w.face, $v) as near }
          order { near, author, title } limit $n offset 5
        }
    """,
}


def measure(scale: Scale) -> Iterator[Figure]:
    """Times of the worked examples."""
    schema = accept(SCHEMA)
    times = scale.pick(full=300, quick=60)
    yield from _stages(schema, times)
    for name, text in EXAMPLES.items():
        each = seconds_each(partial(compile_uncached, text, schema, None, ""), times=times)
        bar = COMPILE_MS_MAX if text is TYPICAL else None
        yield alone(f"compile {name}", each * 1e3, "ms", at_most=bar)
    yield from _from_memory(schema, times)
    yield from _long_texts(schema, scale)


def _stages(schema: Schema, times: int) -> Iterator[Figure]:
    source = Source(TYPICAL)
    query = parse(TYPICAL).queries[0]
    body = bind(query, schema, source).body
    assert isinstance(body, Read)
    plan = build(body)
    for stage, work in (
        ("parse", partial(parse, TYPICAL)),
        ("bind", partial(bind, query, schema, source)),
        ("build the plan of", partial(build, body)),
        ("rewrite the plan of", partial(rewrite, plan, schema)),
    ):
        yield alone(f"{stage} a typical query", seconds_each(work, times=times) * 1e6, "µs")


def _from_memory(schema: Schema, times: int) -> Iterator[Figure]:
    again = seconds_each(partial(compile, TYPICAL, schema), times=times * 20) * 1e6
    yield alone("compile a typical query again, by text and schema", again, "µs", at_most=CACHED_US_MAX)
    params = {"a": "Le Guin"}
    bound = seconds_each(partial(bind_params, compile(TYPICAL, schema), params), times=times * 20) * 1e6
    yield alone("bind the parameters of a typical query", bound, "µs")


def _long_texts(schema: Schema, scale: Scale) -> Iterator[Figure]:
    """Whether the time of a text follows its length."""
    clauses = scale.pick(full=2_000, quick=500)
    short, long = (
        seconds_each(partial(compile_uncached, _long(count), schema, None, ""), times=1, rounds=3)
        for count in (clauses, clauses * 4)
    )
    yield compared(
        f"compile a pattern of {clauses * 4:,} traversals",
        long * 1e3,
        "ms",
        against=f"of {clauses:,}",
        other=short * 1e3,
        at_most=6.0,
    )


def _long(count: int) -> str:
    clauses = " ".join(f"$v{each} knows $v{each + 1} $v{each}.name > $v{each + 1}.name" for each in range(count))
    return f"query q() {{ match {{ {clauses} }} return {{ $v0.name }} }}"


if __name__ == "__main__":
    run("compile", measure)
