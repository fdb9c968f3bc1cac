"""Spreading keys and judging shares: whatever the number of shares, the same is found."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.ids import UlidSource
from omnigraph.language.schema import accept
from omnigraph.pipeline.load.judging import Finding, Judging, Verdict, judge
from omnigraph.pipeline.load.keys import Channel, keys_of, place, places, spread, unpacked_tables
from omnigraph.pipeline.load.problems import Phase
from omnigraph.storage.layout import table_schemas
from omnigraph.transaction.constraint_rules.rules import rules_of
from omnigraph.transaction.mode import Mode

SCHEMA = accept("node P { name: String @key  tag: String? @unique }\nedge K: P -> P @card(0..2)", ids=UlidSource())
RULES, COLUMNS = rules_of(SCHEMA), table_schemas(SCHEMA)
ALL = frozenset({Phase.IDENTITY, Phase.UNIQUE, Phase.END, Phase.DEGREE})
IDS = st.sampled_from(["a", "b", "c", "dd", "é", ""])


def judged(people: list[tuple[str, str | None]], edges: list[tuple[str, str]], shares: int, mode: Mode) -> Verdict:
    nodes = [{"id": name, "name": name, "tag": tag} for name, tag in people]
    ends = [{"id": f"e{number}", "src": a, "dst": b} for number, (a, b) in enumerate(edges)]
    keys: dict[Channel, pa.Table] = {}
    for key, rows in (("node:P", nodes), ("edge:K", ends)):
        table = pa.Table.from_pylist(rows, schema=COLUMNS[key])
        keys |= keys_of(table, RULES.types[key], places(3, 0, len(rows)), fresh=False, each=True)
    sent: dict[int, list[tuple[Channel, bytes]]] = {}
    for share, channel, body in spread(keys, shares):
        sent.setdefault(share, []).append((channel, body))
    whole = Verdict()
    for some in sent.values():
        whole.add(judge(unpacked_tables(some), Judging(RULES, mode, frozenset(), each=True), ALL))
    return whole


def by_hand(people: list[tuple[str, str | None]], edges: list[tuple[str, str]]) -> set[tuple[Phase, str, int]]:
    """What a few loops find."""
    found: set[tuple[Phase, str, int]] = set()
    names: set[str] = set()
    tags: set[str] = set()
    for row, (name, tag) in enumerate(people):
        if name in names:
            found.add((Phase.UNIQUE, name, place(3, row)))
        if tag is not None and tag in tags:
            found.add((Phase.UNIQUE, tag, place(3, row)))
        names.add(name)
        tags |= {tag} if tag is not None else set()
    leaving: dict[str, list[int]] = {}
    for row, (a, b) in enumerate(edges):
        found |= {(Phase.END, end, place(3, row)) for end in (a, b) if end not in names}
        leaving.setdefault(a, []).append(row)
    for node, rows in leaving.items():
        if node in names:
            found |= {(Phase.DEGREE, node, place(3, row)) for row in rows[2:]}
    return found


@settings(max_examples=60)
@given(
    st.lists(st.tuples(IDS, st.one_of(st.none(), IDS)), max_size=6),
    st.lists(st.tuples(IDS, IDS), max_size=6),
    st.integers(1, 4),
)
def test_shares_find_together_what_loops_find(
    people: list[tuple[str, str | None]], edges: list[tuple[str, str]], shares: int
) -> None:
    found = judged(people, edges, shares, Mode.APPEND)
    assert {(each.phase, each.key, each.place) for each in found.findings} == by_hand(people, edges)


def test_only_the_first_is_told_where_one_is_enough() -> None:
    rows = pa.Table.from_pylist([{"id": f"e{n}", "src": "x", "dst": "y"} for n in range(4)], schema=COLUMNS["edge:K"])
    keys = keys_of(rows, RULES.types["edge:K"], places(0, 0, 4), fresh=True, each=False)
    found = judge(keys, Judging(RULES, Mode.APPEND, frozenset()), frozenset({Phase.END}))
    assert sorted(found.findings, key=lambda each: each.rule) == [
        Finding(Phase.END, "edge:K", 0, "x", 0),
        Finding(Phase.END, "edge:K", 0, "y", 1),
    ]


def test_equal_keys_meet_in_one_share() -> None:
    ids = pa.array([f"id{n % 50}" for n in range(500)])
    channel = Channel(next(iter(keys_of_ids())).sort, "node:P")
    shares: dict[str, set[int]] = {}
    for share, _, body in spread({channel: pa.table({"key": ids, "place": np.arange(500, dtype=np.uint64)})}, 7):
        for each in pa.ipc.open_stream(body).read_all().column("key").to_pylist():
            shares.setdefault(str(each), set()).add(share)
    assert len(shares) == 50
    assert all(len(each) == 1 for each in shares.values())
    assert len(set().union(*shares.values())) > 1


def keys_of_ids() -> dict[Channel, pa.Table]:
    rows = pa.Table.from_pylist([{"id": "a", "name": "a", "tag": None}], schema=COLUMNS["node:P"])
    return keys_of(rows, RULES.types["node:P"], places(0, 0, 1), fresh=False, each=True)
