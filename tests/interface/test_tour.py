"""The README's first command, as a new user runs it."""

import os
import subprocess
import sys


def test_the_tour_shows_a_killed_write_finished_and_an_old_state_read() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "omnigraph.cli.tour"], capture_output=True, text=True, check=False, env=dict(os.environ)
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert "140,045 more nodes and edges" in ran.stdout
    assert "value 969 > max 150" in ran.stdout
    assert "dst 'Nobody' not found in Person" in ran.stdout
    assert "expand $p -[Knows{1,2}]-> $friend: Person" in ran.stdout
    assert "other rows, so ours was rebased; both commits stand" in ran.stdout
    assert "refused (read_set_conflict), nothing overwritten" in ran.stdout
    assert "got SIGKILL before it could publish" in ran.stdout
    assert "still 20,003 people" in ran.stdout
    assert "40,003 people\n" in ran.stdout
    assert "RolledForward for doomed" in ran.stdout
    assert "review   40,005 people" in ran.stdout
    assert "there were: Ada, Grace\n" in ran.stdout
    assert "\033" not in ran.stdout, "colours only on a terminal"
