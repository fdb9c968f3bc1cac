"""The README's first command, as a new user runs it."""

import os
import subprocess
import sys
from pathlib import Path


def _cache() -> dict[str, str]:
    """Where earlier runs left Spark's classes, so that this one need not make them again."""
    return {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}


def test_the_tour_loads_asks_heals_merges_and_reads_an_old_state(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "omnigraph.cli.tour", "--small"],
        capture_output=True,
        text=True,
        check=False,
        # An empty home, and no Java or anything else on the path.
        env={"HOME": str(tmp_path), "PATH": "", "TMPDIR": str(tmp_path)} | _cache(),
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "2,005 nodes and 12,000 edges as JSON lines" in ran.stdout
    assert "14,005 rows, every rule checked, in one commit" in ran.stdout
    assert "City 5, Knows 10,000, LivesIn 2,000, Person 2,000" in ran.stdout
    assert "value 969 > max 150" in ran.stdout
    assert "dst 'Nobody' not found in Person" in ran.stdout
    assert "expand $p -[Knows{1,2}]-> $friend: Person" in ran.stdout
    assert "other rows, so ours was rebased; both commits stand" in ran.stdout
    assert "refused (read_set_conflict), nothing overwritten" in ran.stdout
    assert "got SIGKILL before it could publish" in ran.stdout
    assert "still 2,003 people" in ran.stdout
    assert "22,003 people\n" in ran.stdout
    assert "RolledForward for doomed" in ran.stdout
    assert "review   22,005 people" in ran.stdout
    assert "both had moved; merged in" in ran.stdout
    assert "node:Person +2 ~1" in ran.stdout
    assert "main     22,005 people; person-1 is 99 as on 'review', person-2 98 as on 'main'" in ran.stdout
    assert "there were: Ada, Grace\n" in ran.stdout
    assert "\033" not in ran.stdout, "colours only on a terminal"
