"""Random loads against a model made of plain loops: both engines accept the same, publish the same, say the same.

The rules are judged on what a load leaves: of records with one id the last wins a merge, and only that one counts.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.load_lines import refused, rows

import omnigraph
from omnigraph import Graph, limits
from omnigraph.errors import GraphError

SCHEMA = """
node P { name: String @key  mail: String? @unique }
node Q { tag: String? @unique }
edge C: P -> Q @card(1..2)
edge E: P -> P { w: I32? @unique(src, dst) @unique(w) }
edge F: P -> Q
edge K: P -> P { w: I32? @key(src, dst) }
"""
# In the order they are judged. Of edges, the types of both ends.
ENDS = {"P": (), "Q": (), "C": ("P", "Q"), "E": ("P", "P"), "F": ("P", "Q"), "K": ("P", "P")}
RANKS = {name: rank for rank, name in enumerate(ENDS)}
UNIQUE: dict[str, list[tuple[str, ...]]] = {"P": [("mail",)], "Q": [("tag",)], "E": [("src", "dst"), ("w",)]}
LEAST, MOST = 1, 2  # edges of type C that leave a node

Row = dict[str, Any]
State = dict[str, dict[str, Row]]
Record = tuple[str, Row]


# -- the model --------------------------------------------------------------------------------------------------------


def expected(before: State, records: list[Record], mode: str) -> tuple[State, str | None]:
    """The state after a load, and what it is refused with."""
    found = repeated(records, mode) or taken(before, records, mode)
    if found:
        return before, min(found)[-1]
    after = {name: dict(some) for name, some in before.items()}
    if mode == "overwrite":
        after |= {name: {} for name, _ in records}
    last = {(name, row["id"]): line for line, (name, row) in enumerate(records, start=1)}
    winners = [(line, name, row) for line, (name, row) in enumerate(records, 1) if last[name, row["id"]] == line]
    for _, name, row in winners:
        after[name][row["id"]] = row
    found = [*shared(after, winners), *dangling(after, winners), *degrees(before, after, winners, mode)]
    return (before, min(found)[-1]) if found else (after, None)


def repeated(records: list[Record], mode: str) -> list[Any]:
    found, seen = [], set()
    for line, (name, row) in enumerate(records, start=1):
        if (name, row["id"]) in seen and name == "P":
            held = f"value '{row['id']}' held by '{row['id']}' and '{row['id']}'"
            found.append((3, RANKS[name], line, f"@unique violation on P.name: {held} (line {line})"))
        elif (name, row["id"]) in seen and mode != "merge":
            told = f"{'edge' if ENDS[name] else 'node'}:{name} '{row['id']}' occurs twice in one load (line {line})"
            found.append((2, RANKS[name], line, told))
        seen.add((name, row["id"]))
    return found


def taken(before: State, records: list[Record], mode: str) -> list[Any]:
    found = []
    for line, (name, row) in enumerate(records, start=1):
        if mode == "append" and row["id"] in before[name]:
            told = f"{'edge' if ENDS[name] else 'node'} type '{name}' already has id '{row['id']}' (line {line})"
            found.append((2, RANKS[name], line, told))
    return found


def shared(after: State, winners: list[Any]) -> list[Any]:
    found = []
    for line, name, row in winners:
        lines = {other["id"]: at for at, kind, other in winners if kind == name}
        for number, columns in enumerate(UNIQUE.get(name, [])):
            value = [row[column] for column in columns]
            holders = [
                (lines.get(other["id"], 0), other["id"])
                for other in after[name].values()
                if None not in value and [other[column] for column in columns] == value and other is not row
            ]
            if holders and min(holders)[0] < line:
                shown = ", ".join(map(str, value))
                what, shown = (columns[0], shown) if len(columns) == 1 else (f"({', '.join(columns)})", f"({shown})")
                held = f"value '{shown}' held by '{min(holders)[1]}' and '{row['id']}'"
                told = f"@unique violation on {name}.{what}: {held} (line {line})"
                found.append((3, RANKS[name], False, line, number, "", told))
    return found


def dangling(after: State, winners: list[Any]) -> list[Any]:
    found = []
    lines = {(name, row["id"]): line for line, name, row in winners}
    for name, kinds in ENDS.items():
        for row in after[name].values():
            for number, kind in enumerate(kinds):
                end = ("src", "dst")[number]
                if row[end] not in after[kind]:
                    line = lines.get((name, row["id"]))
                    told = f"{end} '{row[end]}' not found in {kind}"
                    if line is None:
                        found.append((4, RANKS[name], True, 0, number, row[end], told))
                    else:
                        found.append((4, RANKS[name], False, line, number, row[end], f"{told} (line {line})"))
    return found


def degrees(before: State, after: State, winners: list[Any], mode: str) -> list[Any]:
    found = []
    mine = [(line, row) for line, name, row in winners if name == "C"]
    if not mine:
        return []
    gone = [row for key, row in before["C"].items() if mode == "overwrite" or key in {row["id"] for _, row in mine}]
    for node in {row["src"] for row in [*gone, *(row for _, row in mine)]} & set(after["P"]):
        count = sum(row["src"] == node for row in after["C"].values())
        if not LEAST <= count <= MOST:
            bound = f"max {MOST}" if count > MOST else f"min {LEAST}"
            told = f"@card violation on edge C: source '{node}' has {count} edges ({bound})"
            lines = [line for line, row in mine if row["src"] == node]
            if lines:
                found.append((5, RANKS["C"], False, min(lines), 0, node, f"{told} (line {min(lines)})"))
            else:
                found.append((5, RANKS["C"], True, 0, 0, node, told))
    return found


# -- random loads -----------------------------------------------------------------------------------------------------


def random_records(chance: np.random.Generator, state: State) -> list[Record]:
    """A few records, many of them with ids and values that others have."""

    def one_of(*values: Any) -> Any:  # noqa: ANN401  (whatever is given)
        return values[int(chance.integers(len(values)))]

    names, found = "abcd", []
    for _ in range(int(chance.integers(1, 9))):
        kind = one_of(*"PQCEFKCEF")
        row: Row
        if kind == "P":
            name = one_of(*names)
            row = {"id": name, "name": name, "mail": one_of(None, None, None, "x", "y")}
        elif kind == "Q":
            row = {"id": one_of("q1", "q2", "q3"), "tag": one_of(None, None, "s", "t")}
        else:
            some = [*(state["P"] or names)] * 12
            target = one_of(*some, "e") if ENDS[kind][1] == "P" else one_of(*[*(state["Q"] or ["q1"])] * 12, "q3")
            row = {"src": one_of(*some, "e"), "dst": target}
            row["id"] = json.dumps([row["src"], target], separators=(",", ":")) if kind == "K" else one_of(*"12345")
            if kind in "EK":
                row["w"] = one_of(None, None, None, 1, 2)
        found.append((kind, row))
    return found


def lines_of(records: list[Record]) -> bytes:
    """The records as a file has them."""
    texts = []
    for name, row in records:
        if ENDS[name]:
            data = {key: value for key, value in row.items() if key not in ("src", "dst")}
            texts.append({"edge": name, "from": row["src"], "to": row["dst"], "data": data})
        else:
            texts.append({"type": name, "data": row})
    return "\n".join(map(json.dumps, texts)).encode()


def walk(graph: Graph, seed: int, steps: int, engines: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Load random records step by step, each engine on a branch of its own; say how many loads ended how."""
    state: State = {name: {} for name in ENDS}
    chance = np.random.default_rng(seed)
    ended: dict[str, int] = {}
    first: list[Record] = [("P", {"id": name, "name": name, "mail": None}) for name in "abcd"]
    state, _ = expected(state, [*first, ("Q", {"id": "q1", "tag": None}), ("Q", {"id": "q2", "tag": "s"})], "append")
    for branch in engines:
        graph.branches.create(f"{branch}-{seed}")
        for name in ("P", "Q"):
            graph.write({name: list(state[name].values())}, branch=f"{branch}-{seed}")
    for step in range(steps):
        mode = ("append", "merge", "merge", "overwrite")[int(chance.integers(4))]
        records = random_records(chance, state)
        after, told = expected(state, records, mode)
        for branch, options in engines.items():
            found = None
            try:
                graph.load(lines_of(records), mode=mode, branch=f"{branch}-{seed}", **options)
            except GraphError as error:
                found = error.message
            assert found == told, (branch, seed, step, mode, state, records)
            if found is None:
                there = {name: {row["id"]: row for row in rows(graph, name, f"{branch}-{seed}")} for name in ENDS}
                assert there == after, (branch, seed, step, mode, state, records)
        state = after
        kind = "accepted" if told is None else told.split(" on ")[0].split(" '")[0]
        ended[kind] = ended.get(kind, 0) + 1
    return ended


@pytest.fixture
def ruled(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "ruled", SCHEMA)


def test_random_loads_leave_what_a_model_of_plain_loops_says(ruled: Graph) -> None:
    ended: dict[str, int] = {}
    for seed in range(4):
        for kind, count in walk(ruled, seed, 40, {"local": {"engine": "local"}}).items():
            ended[kind] = ended.get(kind, 0) + count
    assert ended["accepted"] >= 20
    assert len(ended) >= 6, ended


@pytest.fixture
def _validated_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded by the driver alone, however little it is."""
    monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)


@pytest.mark.usefixtures("_validated_by_spark")
def test_both_engines_accept_publish_and_refuse_alike(ruled: Graph, spark: object) -> None:
    ended = walk(ruled, 100, 24, {"local": {"engine": "local"}, "spark": {"engine": "spark", "spark": spark}})
    assert ended["accepted"] >= 5, ended


@pytest.mark.torture
@pytest.mark.usefixtures("_validated_by_spark")
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_both_engines_accept_publish_and_refuse_alike_for_long(ruled: Graph, spark: object, seed: int) -> None:
    walk(ruled, seed, 50, {"local": {"engine": "local"}, "spark": {"engine": "spark", "spark": spark}})


# -- found by it, and before it ---------------------------------------------------------------------------------------


def lines(*edges: tuple[str, str, str], kind: str) -> bytes:
    return lines_of([(kind, {"id": key, "src": source, "dst": target}) for key, source, target in edges])


PEOPLE = lines_of([("P", {"id": name, "name": name}) for name in "abcz"] + [("Q", {"id": each}) for each in "bc"])


def test_an_end_that_only_a_record_that_counts_names_is_missed(ruled: Graph, options: Mapping[str, Any]) -> None:
    ruled.load(PEOPLE, mode="append", engine="local")
    data = lines(("1", "a", "missing"), ("1", "b", "b"), ("2", "a", "missing"), kind="E")
    refused(
        ruled, lambda: ruled.load(data, mode="merge", **options), GraphError, "dst 'missing' not found in P (line 3)"
    )


def test_an_end_that_only_a_superseded_record_names_is_not_missed(ruled: Graph, options: Mapping[str, Any]) -> None:
    ruled.load(PEOPLE, mode="append", engine="local")
    ruled.load(lines(("1", "a", "missing"), ("1", "b", "b"), kind="F"), mode="merge", **options)
    assert [(row["id"], row["src"]) for row in rows(ruled, "F")] == [("1", "b")]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [("1", "a", "b"), ("2", "a", "c"), ("3", "a", "b"), ("4", "a", "b"), ("1", "z", "b")],
            "source 'a' has 3 edges (max 2) (line 2)",
        ),
        ([("1", "a", "b"), ("2", "a", "c"), ("3", "a", "c"), ("2", "z", "c")], None),
    ],
    ids=["too many", "as many as may be"],
)
def test_edges_that_a_later_record_supersedes_are_not_counted(
    ruled: Graph, options: Mapping[str, Any], edges: list[tuple[str, str, str]], message: str | None
) -> None:
    ruled.load(PEOPLE, mode="append", engine="local")
    load: Callable[[], object] = lambda: ruled.load(lines(*edges, kind="C"), mode="merge", **options)  # noqa: E731
    if message is None:
        load()
        assert sorted(row["src"] for row in rows(ruled, "C")) == ["a", "a", "z"]
    else:
        refused(ruled, load, GraphError, message)
