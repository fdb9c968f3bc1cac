"""Sessions at a terminal, written down and played again.

Lines that begin with `$ ` are typed, what follows is what appears; `!` before a line marks stderr, and `[exit N]` a
code other than 0. `< FILE` at the end is what is typed into the program. `@ ` begins what prepares: `@ NAME=VALUE`
sets a variable, `@ config FILE` takes a file as the operator's configuration, `@ copy FILE FILE` puts a file in
another's place. Ids, times, sizes of files and the like differ from run to run and stand as `<…>`.
"""

import io
import re
import shlex
from pathlib import Path
from typing import Protocol

from tests.support.command_line import Run

_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_DIFFERING = (
    (re.compile(r'(?<="seconds": )[\d.e-]+'), "<seconds>"),
    (re.compile(r"\b\d{16}\b"), "<time>"),
    (re.compile(r"(?<=time=)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"((?:time|created): )\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), r"\1<time>"),
    (re.compile(r'("created": ")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'), r"\1<time>"),
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


class Patch(Protocol):
    """What changes the surroundings of a test, and changes them back."""

    def setattr(self, target: str, name: object, /) -> None:
        """Put something in the place of what has a name."""

    def setenv(self, name: str, value: str, /) -> None:
        """Set a variable."""


class Session:
    """Runs a session in a folder of its own, and remembers the ids it has seen, so that they can be typed again."""

    def __init__(self, run: Run, folder: Path, patch: Patch) -> None:
        self._run = run
        self._folder = folder
        self._patch = patch
        self._ids: dict[str, str] = {}

    def played(self, text: str) -> str:
        """A session as it goes now, from the text of how it went."""
        shown = []
        for line in text.splitlines():
            if line.startswith("$ "):
                shown.append(f"{line}\n{self.typed(line)}")
            elif line.startswith(("# ", "@ ")):
                shown.append(f"{line}\n")
                if line.startswith("@ "):
                    self.prepare(line)
        return "".join(shown)

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
        self._patch.setattr("sys.stdin", io.StringIO((self._folder / file).read_text() if file else ""))
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
            self._patch.setenv(*first.split("=", 1))

    def _named(self, ulid: str) -> str:
        return self._ids.setdefault(ulid, f"<id {len(self._ids) + 1}>")
