"""Graphs damaged by hand: what the command line says of them, word for word where it matters."""

import json
import os
import re
from pathlib import Path

import pytest
from tests.support.command_line import Run

from omnigraph.clock import SystemClock
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.pruning.prune import put_barrier
from omnigraph.transaction.root import open_root


@pytest.fixture
def written(run: Run, library: str) -> Path:
    """Entries: 1 init, 2 an author, 3 another, on a branch too; 4 the first is gone."""

    def mutate(text: str, *more: str) -> None:
        assert run("mutate", "--store", library, "--quiet", "-e", f"query q() {{ {text} }}", *more).code == 0

    mutate('insert Author { name: "Butler" }')
    mutate('insert Author { name: "Lem" }')
    assert run("branch", "create", "side", "--store", library).code == 0
    mutate('delete Author where name = "Butler"')
    return Path(library)


def newest(root: Path, pattern: str) -> Path:
    return max(root.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name))


def test_a_cut_file_is_named_with_its_rows_what_is_lost_and_what_is_whole(run: Run, written: Path) -> None:
    file = newest(written, "nodes/*/data/*.lance")
    os.truncate(file, 50)

    told = run("verify", str(written))

    assert told.code == 1
    lines = [re.sub(r"\(01\w+\)", "(id)", line) for line in told.out.splitlines()]
    assert lines[0].startswith(f"data file {file.relative_to(written)} (1 rows): it has 50 bytes, and had ")
    assert lines[1:-1] == [
        "  data lost on main #3 (id): node:Author",
        "  data lost on main #4 (id): node:Author",
        "  data lost on side #1 (id): node:Author",
        "readable on main: #1 to #2",
        "readable on side: no commit",
    ]
    document = json.loads(run("verify", str(written), "--json").out)
    assert document["readable"] == [{"branch": "main", "numbers": [[1, 2]]}, {"branch": "side", "numbers": []}]


def test_repair_leaves_what_can_be_read_and_then_every_head_is_whole(run: Run, written: Path) -> None:
    newest(written, "nodes/*/data/*.lance").unlink()
    assert run("repair", str(written)).code == 1

    mended = run("repair", str(written), "--confirm", "--quiet")

    assert mended.code == 0
    assert "node:Author: suspicious, healed (it is missing)" in mended.out
    assert "readable on main: #1 to #2, #5" in run("verify", str(written)).out.splitlines()


def test_a_log_with_times_ahead_of_the_clock_is_told_refused_and_mended(run: Run, written: Path) -> None:
    assert run("repair", str(written), "--clock", "--quiet").out == "no commit is ahead of the store's clock\n"
    assert run("repair", str(written), "--clock", "--confirm").code == 2
    clock = ManualClock(SystemClock().now_us() + 10 * 365 * 86_400 * 1_000_000)
    parts = open_root(str(written), clock=clock)
    parts.log.store_clock.learn(clock.now_us())  # as a release that did not ask the store
    put_barrier(parts, MAIN)

    assert "omnigraph repair --clock" in run("verify", str(written)).out
    refused = run("branch", "create", "late", "--store", str(written))
    assert refused.code != 0
    assert "omnigraph repair --clock" in refused.err
    assert run("repair", str(written), "--clock", "--quiet").out.startswith("main: corrected the times of 1 entries")
    assert run("branch", "create", "late", "--store", str(written)).code == 0


def test_what_loses_nothing_is_not_said_to_lose_anything(run: Run, written: Path) -> None:
    assert run("optimize", str(written), "--quiet").code == 0
    for file in written.glob("nodes/*/_indices/*/*"):
        file.unlink()

    told = run("verify", str(written))

    assert told.code == 1
    assert "  found on main #5" in told.out
    assert "lost" not in told.out
    assert "readable on" not in told.out


def test_a_log_entry_in_which_a_bit_flipped_is_named(run: Run, written: Path) -> None:
    entry = written / paths.log_folder("main") / f"{2**64 - 1 - 3:020d}.json"
    entry.write_bytes(entry.read_bytes().replace(b"Author", b"Euthor"))

    told = run("verify", str(written))

    assert told.code == 1
    assert "is not what was written: its checksum differs\n  data lost on main #3\n" in told.out
    assert "readable on main: #1 to #2, #4" in told.out.splitlines()


def test_upkeep_that_meets_a_damaged_file_says_so_without_the_calls_on_the_way(run: Run, written: Path) -> None:
    os.truncate(newest(written, "nodes/*/data/*.lance"), 50)

    refused = run("optimize", str(written), "--quiet")

    assert refused.code == 1
    assert "is damaged" in refused.err
    assert "omnigraph verify" in refused.err
    assert "Traceback" not in refused.err


def test_a_file_that_is_gone_is_damage_and_not_what_was_pruned(run: Run, written: Path) -> None:
    newest(written, "nodes/*/_versions/d*.manifest").unlink()

    refused = run("query", "--store", str(written), "-e", "query q() { match { $a: Author } return { $a.name } }")

    assert refused.code == 1
    assert "try: see what is damaged and what can be done: omnigraph verify" in refused.err
    assert "prune" not in refused.err


@pytest.mark.parametrize("words", [("sweep",), ("cleanup", "--keep", "5", "--confirm")])
def test_a_sweep_reports_the_table_of_a_file_that_is_gone(run: Run, written: Path, words: tuple[str, ...]) -> None:
    gone = newest(written, "nodes/*/_versions/d*.manifest")
    gone.unlink()

    told = run(words[0], str(written), *words[1:])

    assert told.code == 0
    assert gone.parent.parent.name in told.out or "node:Author" in told.out
