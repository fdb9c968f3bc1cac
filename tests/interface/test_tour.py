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
    assert "other rows, so it was rebased" in ran.stdout
    assert "refused (read_set_conflict)" in ran.stdout
    assert "killed (SIGKILL) before publishing" in ran.stdout
    assert "still 20,003 people" in ran.stdout
    assert "20,005 people (1 write healed)" in ran.stdout
    assert "RolledForward for doomed" in ran.stdout
    assert "there are: Ada, Grace\n" in ran.stdout
    assert "\033" not in ran.stdout, "colours only on a terminal"
