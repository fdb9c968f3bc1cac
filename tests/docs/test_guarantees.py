"""What is promised leads to tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
_NAMED = re.compile(r"`((?:tests|benchmarks)/[^`]*)`")
_LINKED = re.compile(r"\[`[^`]*`\]\(([^)]+)\)")


def test_every_test_named_is_there() -> None:
    named = _NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 50
    assert [path for path in named if not list(ROOT.glob(path))] == []


def test_every_link_to_a_test_leads_somewhere() -> None:
    linked = _LINKED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(linked) > 50
    assert [path for path in linked if not (PAGE.parent / path).exists()] == []


def test_every_promise_names_a_test_that_holds_it() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith(("| #", "| part"))]
    assert len(promises) > 20
    assert [row for row in promises if not _NAMED.search(row)] == []
