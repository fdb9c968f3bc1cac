"""What every command prints, word for word.

A session is a text in `golden/`: lines that begin with `$ ` are typed, what follows is what appears; `!` before a line
marks stderr, and `[exit N]` a code other than 0. Ids, times, sizes of files and the like differ from run to run and
stand as `<…>`. To accept what is printed now: `OMNIGRAPH_GOLDEN=accept pytest tests/interface/cli/test_golden.py`.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from omnigraph.cli.table import COMMANDS
from omnigraph.testing.command_line import Run

FOLDER = Path(__file__).parent / "golden"
SESSIONS = sorted(FOLDER.glob("*.txt"))
FILES = FOLDER / "files"
# Commands that need a service, a terminal or Spark, and are shown elsewhere.
ELSEWHERE = {"shell", "demo", "analytics", "spark-sql", "completion"}
_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_DIFFERING = (
    (re.compile(r"\b\d{16}\b"), "<time>"),
    (re.compile(r"\b\d{18,20}\b"), "<version>"),
    (re.compile(r"(?<=cursor: )\S+"), "<cursor>"),
    (re.compile(r'(?<="cursor": ")[^"]+'), "<cursor>"),
    (re.compile(r'(?<="resume_cursor": ")[^"]+'), "<cursor>"),
    (re.compile(r'(?<="id": ")[A-Za-z0-9_-]{43}(?=")'), "<type>"),
    (re.compile(r"\b\d+(\.\d)? (B|KB|MB)\b"), "<size>"),
    (re.compile(r'(?<=bytes": )\d+'), "<bytes>"),
    (re.compile(r'(?<=bytes_removed": )\d+'), "<bytes>"),
    (re.compile(r'(?<=bytes_kept": )\d+'), "<bytes>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<etag>"),
    (re.compile(r"\d+\.\d s\b"), "<seconds> s"),
    (re.compile(r"[\d,]+ rows, [\d,]+/s, \d+ s"), "<rate>"),
)


class _Session:
    """Runs a session in a folder of its own, and remembers the ids it has seen, so that they can be typed again."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._ids: dict[str, str] = {}

    def plain(self, text: str) -> str:
        """The text without what differs from run to run."""
        text = text.replace(str(self._folder), "<here>")
        text = _ULID.sub(lambda found: self._named(found[0]), text)
        for pattern, stands in _DIFFERING:
            text = pattern.sub(stands, text)
        return text

    def typed(self, line: str) -> str:
        """Type a line, and say what came of it."""
        words = line.removeprefix("$ omnigraph ")
        for name, ulid in {name: ulid for ulid, name in self._ids.items()}.items():
            words = words.replace(name, ulid)
        ended = self._run(*shlex.split(words))
        said = self.plain(ended.out)
        if said and not said.endswith("\n"):
            said += " [no end of line]\n"
        said += "".join(f"! {each}\n" for each in self.plain(ended.err).splitlines())
        return said + (f"[exit {ended.code}]\n" if ended.code else "")

    def _named(self, ulid: str) -> str:
        return self._ids.setdefault(ulid, f"<id {len(self._ids) + 1}>")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_prints_what_it_printed(
    path: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in FILES.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    session = _Session(run, tmp_path)
    expected = path.read_text()
    shown = []
    for line in expected.splitlines():
        if line.startswith("$ "):
            shown.append(f"{line}\n{session.typed(line)}")
        elif line.startswith("# "):
            shown.append(f"{line}\n")
    found = "".join(shown)
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        path.write_text(found)
    assert found == expected


def test_every_command_is_in_some_session() -> None:
    typed = "\n".join(path.read_text() for path in SESSIONS)
    missing = [
        entry.name
        for entry in COMMANDS
        if f"$ omnigraph {entry.name} " not in typed
        and f"$ omnigraph {entry.name}\n" not in typed
        and entry.path[0] not in ELSEWHERE
    ]
    assert missing == []
