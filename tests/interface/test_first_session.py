"""A new user's first session, typed into a real terminal; its screens are in the documentation.

To take the screens anew: `OMNIGRAPH_GOLDEN=accept pytest -m torture tests/interface/test_first_session.py`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "first-session.md"
FILES = Path(__file__).parent / "cli" / "golden" / "files"
BLOCK = re.compile(r"```text\n(.*?)```\n", re.DOTALL)
# A prompt that waits: of the shell, or of the graph's own.
WAITING = re.compile(r"(\$|main>|    ·)$")
TYPED = re.compile(r"^(?:\$ |main> |    · )(.*)$")


class Terminal:
    """A terminal of tmux, 100 columns wide."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self._folder = folder
        environment = {"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        shell = ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        shell += ["TERM=screen", "PS1=$ ", "bash", "--norc"]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "60", "-c", str(folder), *shell)
        self.wait()

    def screen(self) -> str:
        """What is seen."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p").splitlines()).rstrip()

    def wait(self) -> None:
        """Until a prompt waits for words."""
        for _ in range(600):
            if WAITING.search(self.screen()):
                return
            time.sleep(0.05)
        raise AssertionError(f"the terminal waits for nothing:\n{self.screen()}")

    def type_in(self, line: str) -> None:
        """Type a line and wait for what comes of it."""
        self._tmux("send-keys", "-l", line)
        before = self.screen()
        self._tmux("send-keys", "Enter")
        for _ in range(600):
            if self.screen() != before:
                break
            time.sleep(0.02)
        self.wait()

    def clear(self) -> None:
        """An empty screen."""
        self._tmux("send-keys", "C-l")
        for _ in range(600):
            if self.screen() == "$":
                return
            time.sleep(0.02)

    def close(self) -> None:
        """End it."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        asked = ["tmux", "-S", self._socket, *words]
        return subprocess.run(asked, check=True, capture_output=True, text=True, cwd=self._folder).stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a schema and some books; its name is short, so that no line is broken because of it."""
    with tempfile.TemporaryDirectory(prefix="first-", ignore_cleanup_errors=True) as made:
        for name in ("library.pg", "books.jsonl"):
            shutil.copy(FILES / name, Path(made) / name)
        yield Path(made)


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal in that folder."""
    opened = Terminal(folder)
    yield opened
    opened.close()


def plain(screen: str, folder: Path) -> str:
    """A screen without what differs from run to run, and without the prompt that waits at its end."""
    screen = screen.replace(str(folder), "<here>")
    screen = re.sub(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b", "<id>", screen)
    screen = re.sub(r"\b\d+(\.\d)? (B|KB|MB)\b", "<size>", screen)
    return re.sub(r"\n?(\$|main>)$", "", screen) + "\n"


@pytest.mark.torture
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed on this machine")
def test_the_first_session_shows_what_the_guide_shows(terminal: Terminal, folder: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    seen = page
    for block in BLOCK.findall(page):
        terminal.clear()
        for line in block.splitlines():
            words = TYPED.match(line)
            if words is not None:
                terminal.type_in(words[1])
        seen = seen.replace(f"```text\n{block}```\n", f"```text\n{plain(terminal.screen(), folder)}```\n")
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        PAGE.write_text(seen, encoding="utf-8")
    assert seen == page
