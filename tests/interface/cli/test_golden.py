"""What every command prints, word for word.

A session is a text in `golden/`; `tests.support.sessions` says how to read it. To accept what is printed now:
`OMNIGRAPH_GOLDEN=accept pytest tests/interface/cli/test_golden.py`.
"""

import os
import shlex
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.support.sessions import Session

from omnigraph.cli.commands.completion import command_flags
from omnigraph.cli.specs import COMMANDS, CommandSpec

FOLDER = Path(__file__).parent / "golden"
SESSIONS = sorted(FOLDER.glob("*.txt"))
FILES = FOLDER / "files"
# Commands that are shown elsewhere: a process of its own (test_tour.py), scripts for shells (test_completion.py), what
# needs a server (test_stored_queries.py, and test_for_operators.py there) or a program at the other end (test_mcp.py).
ELSEWHERE = {"demo", "completion", "alias", "graphs", "mcp", "token"}


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_prints_what_it_printed(
    path: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "spark" in path.stem:
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    for file in FILES.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    expected = path.read_text()
    found = Session(run, tmp_path, monkeypatch).played(expected)
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        path.write_text(found)
    assert found == expected


@pytest.mark.parametrize("path", [path for path in SESSIONS if "spark" not in path.stem], ids=lambda path: path.stem)
def test_a_session_without_spark_starts_none(path: Path) -> None:
    """There is one Spark session in a process: started by a command, it would not be the one the tests ask for."""
    loads = [line for line in path.read_text().splitlines() if line.startswith(("$ omnigraph load", "$ omnigraph ing"))]
    assert [line for line in loads if "--engine local" not in line] == []


def typed_lines() -> list[tuple[list[str], int]]:
    """The words of every line of every session, and how each ended."""
    found: list[tuple[list[str], int]] = []
    for path in SESSIONS:
        for line in path.read_text().splitlines():
            if line.startswith("$ omnigraph "):
                found.append((shlex.split(line.removeprefix("$ omnigraph ").partition(" < ")[0]), 0))
            elif line.startswith("[exit "):
                found[-1] = (found[-1][0], int(line.removeprefix("[exit ").removesuffix("]")))
    return found


@pytest.mark.parametrize("spec", [spec for spec in COMMANDS if spec.path[0] not in ELSEWHERE], ids=lambda s: s.name)
def test_every_command_is_seen_to_answer_people_and_where_it_can_programs(spec: CommandSpec) -> None:
    answered = [words for words, code in TYPED if tuple(words[: len(spec.path)]) == spec.path and code == 0]
    takes_json = any("--json" in flag.names for flag in command_flags(spec))
    assert [words for words in answered if "--json" not in words], "for people"
    assert not takes_json or [words for words in answered if "--json" in words], "for programs"


TYPED = typed_lines()
