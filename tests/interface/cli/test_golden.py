"""What every command prints, word for word.

A session is a text in `golden/`: lines that begin with `$ ` are typed, what follows is what appears; `!` before a line
marks stderr, and `[exit N]` a code other than 0. `< FILE` at the end is what is typed into the program. Lines that
begin with `@ ` prepare: `@ NAME=VALUE` sets a variable, `@ config FILE` takes a file as the operator's configuration,
`@ copy FILE FILE` puts a file in another's place.
Ids, times, sizes of files and the like differ from run to run and stand as `<…>`. To accept what is printed now:
`OMNIGRAPH_GOLDEN=accept pytest tests/interface/cli/test_golden.py`.
"""

import io
import os
import re
import shlex
from pathlib import Path

import pytest

from omnigraph.cli.completion import flags_of
from omnigraph.cli.table import COMMANDS, Entry
from omnigraph.testing.command_line import Run

FOLDER = Path(__file__).parent / "golden"
SESSIONS = sorted(FOLDER.glob("*.txt"))
FILES = FOLDER / "files"
# Commands that are shown elsewhere: a process of its own (test_tour.py), scripts for shells (test_completion.py), what
# needs a server (tests/server) or a program at the other end (test_mcp.py).
ELSEWHERE = {"demo", "completion", "mcp"}
_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_DIFFERING = (
    (re.compile(r'(?<="seconds": )[\d.e-]+'), "<seconds>"),
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
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b\d+ s ago"), "<seconds> s ago"),
    (re.compile(r'(?<="lock_age_seconds": )\d+'), "<seconds>"),
    (re.compile(r"\d+\.\d s\b"), "<seconds> s"),
    (re.compile(r"[\d,]+ rows, [\d,]+/s, \d+ s"), "<rate>"),
)


class _Session:
    """Runs a session in a folder of its own, and remembers the ids it has seen, so that they can be typed again."""

    def __init__(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._folder = folder
        self._monkeypatch = monkeypatch
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
        typed, _, file = words.partition(" < ")
        self._monkeypatch.setattr("sys.stdin", io.StringIO((self._folder / file).read_text() if file else ""))
        ended = self._run(*shlex.split(typed))
        said = self.plain(ended.out)
        if said and not said.endswith("\n"):
            said += " [no end of line]\n"
        said += "".join(f"! {each}\n" for each in self.plain(ended.err).splitlines())
        return said + (f"[exit {ended.code}]\n" if ended.code else "")

    def prepare(self, line: str) -> None:
        """What has to be there before."""
        first, _, rest = line.removeprefix("@ ").partition(" ")
        if first == "config":
            (self._folder / "home" / "config.yaml").write_bytes((self._folder / rest).read_bytes())
        elif first == "copy":
            source, target = rest.split()
            (self._folder / target).write_bytes((self._folder / source).read_bytes())
        else:
            self._monkeypatch.setenv(*first.split("=", 1))

    def _named(self, ulid: str) -> str:
        return self._ids.setdefault(ulid, f"<id {len(self._ids) + 1}>")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_session_prints_what_it_printed(
    path: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "spark" in path.stem:
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    for each in FILES.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    session = _Session(run, tmp_path, monkeypatch)
    expected = path.read_text()
    shown = []
    for line in expected.splitlines():
        if line.startswith("$ "):
            shown.append(f"{line}\n{session.typed(line)}")
        elif line.startswith(("# ", "@ ")):
            shown.append(f"{line}\n")
            if line.startswith("@ "):
                session.prepare(line)
    found = "".join(shown)
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        path.write_text(found)
    assert found == expected


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


@pytest.mark.parametrize("entry", [entry for entry in COMMANDS if entry.path[0] not in ELSEWHERE], ids=lambda e: e.name)
def test_every_command_is_seen_to_answer_people_and_where_it_can_programs(entry: Entry) -> None:
    answered = [words for words, code in TYPED if tuple(words[: len(entry.path)]) == entry.path and code == 0]
    takes_json = any("--json" in flag.names for flag in flags_of(entry))
    assert [words for words in answered if "--json" not in words], "for people"
    assert not takes_json or [words for words in answered if "--json" in words], "for programs"


TYPED = typed_lines()
