"""Trees of versions of one table, written at random, against a model that is a dictionary per version."""

import random  # noqa: TID251  (seeded: every run does the same)
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, StagedVersion, Tables

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("color", pa.string()),
    pa.field("text", pa.string()),
]
SCHEMA = pa.schema(FIELDS)
TABLE = "nodes/01THING"
SPECS = (
    IndexSpec("by_id", "id", IndexKind.BTREE),
    IndexSpec("by_color", "color", IndexKind.BITMAP),
    IndexSpec("by_part", "text", IndexKind.NGRAM),
)
COLORS = ("red", "green", "blue")
WORDS = ("apple", "banana", "cherry")
IDS = tuple(f"k'{number}" for number in range(40))

Model = dict[str, tuple[str, str]]


def rows(content: Model) -> pa.Table:
    return pa.table(
        {
            "id": list(content),
            "color": [color for color, _ in content.values()],
            "text": [text for _, text in content.values()],
        },
        schema=SCHEMA,
    )


@dataclass(eq=False)
class Fuzz:
    """Versions made so far, each with what it should hold."""

    root: Path
    source: random.Random
    tables: Tables
    versions: list[tuple[Pin, Model]] = field(default_factory=list)

    def random_content(self, ids: list[str]) -> Model:
        return {one: (self.source.choice(COLORS), f"{self.source.choice(WORDS)} {one}") for one in ids}

    def change(self, model: Model, ids: tuple[str, ...] = IDS) -> tuple[RowsToStage, Model]:
        """A random write that touches `ids` only, and what the table holds after it."""
        touched = self.source.sample(ids, self.source.randint(0, min(8, len(ids))))
        cut = self.source.randint(0, len(touched))
        written = self.random_content(touched[:cut])
        fresh = {one: row for one, row in written.items() if one not in model and self.source.random() < 0.5}
        upserted = {one: row for one, row in written.items() if one not in fresh}
        deleted = tuple(touched[cut:])
        after = {one: row for one, row in (model | written).items() if one not in deleted}
        return RowsToStage(rows(upserted), rows(fresh), deleted), after

    def step(self) -> None:
        pin, model = self.source.choice(self.versions[-6:])
        kinds: dict[Callable[[Pin, Model], tuple[StagedVersion, Model]], int] = {
            self.write: 9,
            self.replace: 1,
            self.extend: 4,
            self.fold: 1,
            self.compact: 2,
        }
        (act,) = self.source.choices(list(kinds), weights=list(kinds.values()))
        staged, after = act(pin, model)
        assert staged.base == pin
        self.check(staged.pin, after)
        self.versions.append((staged.pin, after))
        self.check(*self.source.choice(self.versions))
        self.check_difference(*self.source.sample(self.versions, 2))

    def write(self, pin: Pin, model: Model) -> tuple[StagedVersion, Model]:
        change, after = self.change(model)
        staged = self.tables.stage_rows(pin, change)
        self.check_ids(staged, model, after)
        return staged, after

    def replace(self, pin: Pin, model: Model) -> tuple[StagedVersion, Model]:
        after = self.random_content(self.source.sample(IDS, self.source.choice([0, 5, 20])))
        staged = self.tables.stage_rows(pin, RowsToStage(upserts=rows(after), replaces=True))
        self.check_ids(staged, model, after, rewritten=set(model) & set(after))
        return staged, after

    def extend(self, pin: Pin, model: Model) -> tuple[StagedVersion, Model]:
        return self.tables.stage_index_delta(pin, *self.source.sample(SPECS, 2)), model

    def fold(self, pin: Pin, model: Model) -> tuple[StagedVersion, Model]:
        return self.tables.fold_index(pin, *SPECS), model

    def compact(self, pin: Pin, model: Model) -> tuple[StagedVersion, Model]:
        return self.tables.stage_compaction(pin, SPECS), model

    def reopen(self) -> None:
        """Go on as a process that has read nothing yet."""
        shared_session.cache_clear()
        self.tables = Tables(str(self.root))

    def check_ids(self, staged: StagedVersion, before: Model, after: Model, rewritten: set[str] | None = None) -> None:
        assert set(staged.inserted_ids) == after.keys() - before.keys()
        assert set(staged.deleted_ids) == before.keys() - after.keys()
        changed = {one for one in before.keys() & after.keys() if before[one] != after[one]}
        assert changed <= set(staged.updated_ids) <= before.keys() & after.keys()
        assert rewritten is None or set(staged.updated_ids) == rewritten

    def check_difference(self, older: tuple[Pin, Model], newer: tuple[Pin, Model]) -> None:
        """The older content without what was removed and with what was added is the newer content."""
        found = self.tables.difference(older[0], newer[0])
        removed = {row["id"]: (row["color"], row["text"]) for row in found.removed.to_pylist()}
        added = {row["id"]: (row["color"], row["text"]) for row in found.added.to_pylist()}
        assert removed.items() <= older[1].items()
        assert {one: row for one, row in older[1].items() if one not in removed} | added == newer[1]

    def check(self, pin: Pin, model: Model) -> None:
        table = self.tables.open(pin)
        found = table.scan().to_pylist()
        assert {row["id"]: (row["color"], row["text"]) for row in found} == model
        assert len(found) == len(model) == table.count()
        asked = self.source.sample(IDS, 5)
        looked_up = table.rows_with_ids(asked, columns=["id"]).column("id").to_pylist()
        assert sorted(map(str, looked_up)) == sorted(one for one in asked if one in model)
        color = self.source.choice(COLORS)
        assert table.count(f"color = '{color}'") == sum(row[0] == color for row in model.values())
        part = self.source.choice(WORDS)[1:]
        with_part = table.scan(columns=["id"], filter=f"contains(text, '{part}')").column("id").to_pylist()
        assert sorted(map(str, with_part)) == sorted(one for one, row in model.items() if part in row[1])


def fuzz(root: Path, seed: int) -> Fuzz:
    tables = Tables(str(root))
    run = Fuzz(root, random.Random(seed), tables)
    run.versions.append((tables.create(TABLE, SCHEMA), {}))
    first = run.random_content(list(IDS[:25]))
    run.versions.append((tables.stage_rows(run.versions[0][0], RowsToStage(appends=rows(first))).pin, first))
    return run


def run_tree(root: Path, seed: int, steps: int) -> None:
    run = fuzz(root, seed)
    for number in range(steps):
        run.step()
        if number % 15 == 14:
            run.reopen()
    for pin, model in run.versions:
        run.check(pin, model)
    assert lance.dataset(str(root / TABLE)).version == 1


def run_rebases(root: Path, seed: int, rounds: int) -> None:
    """Two writes on one base that touch different ids: rebasing either onto the other is applying both."""
    run = fuzz(root, seed)
    for number in range(rounds):
        base, model = run.versions[-1]
        mine = set(run.source.sample(IDS, len(IDS) // 2))
        ours, ours_after = run.change(model, tuple(one for one in IDS if one in mine))
        theirs, theirs_after = run.change(model, tuple(one for one in IDS if one not in mine))
        both = {one: row for one, row in ours_after.items() if one in mine}
        both |= {one: row for one, row in theirs_after.items() if one not in mine}
        left, right = run.tables.stage_rows(base, ours), run.tables.stage_rows(base, theirs)
        if number % 2:
            run.reopen()
        for staged, onto in ((left, right), (right, left)):
            rebased = run.tables.rebase(base, staged.pin, onto.pin)
            assert rebased is not None
            run.check(rebased.pin, both)
            assert set(rebased.inserted_ids) == set(staged.inserted_ids)
            assert set(rebased.updated_ids) == set(staged.updated_ids)
            assert set(rebased.deleted_ids) == set(staged.deleted_ids)
            pin = rebased.pin
        if number % 4 == 3:
            pin = run.tables.stage_index_delta(pin, *SPECS).pin
        if number % 5 == 4:
            pin = run.tables.stage_compaction(pin, SPECS).pin
        run.versions.append((pin, both))
        run.check(pin, both)


@pytest.mark.parametrize("seed", range(6))
def test_every_version_of_a_tree_holds_what_the_model_holds(tmp_path: Path, seed: int) -> None:
    run_tree(tmp_path / "graph", seed, steps=40)


@pytest.mark.parametrize("seed", range(4))
def test_rebasing_disjoint_writes_is_applying_both(tmp_path: Path, seed: int) -> None:
    run_rebases(tmp_path / "graph", seed, rounds=12)


def test_a_tree_is_right_with_the_smallest_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ID_FILTER_IDS_MAX", 2)
    monkeypatch.setattr(limits, "ID_PASS_ROWS_MAX", 3)
    monkeypatch.setattr(limits, "ID_LOOKUP_ROWS_SHARE_MAX", 0.4)
    monkeypatch.setattr(limits, "SMALL_FRAGMENT_ROWS_MAX", 10)
    monkeypatch.setattr(limits, "STAGED_EFFECTS_MAX", 1)
    monkeypatch.setattr(limits, "OPEN_TABLES_MAX", 1)
    run_tree(tmp_path / "tree", 100, steps=40)
    run_rebases(tmp_path / "rebases", 100, rounds=8)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1_000, 1_050))
def test_large_trees_hold_what_the_model_holds(tmp_path: Path, seed: int) -> None:
    run_tree(tmp_path / "tree", seed, steps=150)
    run_rebases(tmp_path / "rebases", seed, rounds=40)
