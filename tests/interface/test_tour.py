"""The README's first command, as a new user runs it.

What it tells is in `cli/golden/elsewhere/demo.txt`; to accept what it tells now, run this with OMNIGRAPH_GOLDEN=accept.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parent / "cli" / "golden" / "elsewhere" / "demo.txt"
# What differs from run to run, or from machine to machine.
DIFFERING = (
    (r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "<id>"),
    (r"[\d.]+ ms\b", "<time> ms"),
    (r"[\d.]+ s\b", "<time> s"),
    (r"[\d,]+ rows/s", "<many> rows/s"),
    (r"Spark \S+ on Java \S+, local\[\d+\]", "Spark <version> on Java <version>, local[<cores>]"),
    (r"\d+ files, \d+ MB", "<many> files, <size> MB"),
    (r"    \w+ …\n", ""),  # how far a load is, which is told now and then
)


def _cache() -> dict[str, str]:
    """Where earlier runs left Spark's classes, so that this one need not make them again."""
    return {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}


def test_the_tour_loads_asks_heals_merges_and_reads_an_old_state(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "omnigraph.cli", "demo", "--small"],
        capture_output=True,
        text=True,
        check=False,
        # An empty home, and no Java or anything else on the path.
        env={"HOME": str(tmp_path), "PATH": "", "TMPDIR": str(tmp_path)} | _cache(),
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    told = ran.stdout
    for pattern, stands in DIFFERING:
        told = re.sub(pattern, stands, told)
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        GOLDEN.write_text(told)
    assert told == GOLDEN.read_text()
    assert "\033" not in ran.stdout, "colours only on a terminal"
