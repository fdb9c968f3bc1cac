"""The program run in this process, on a graph of the test's own."""

from pathlib import Path

import pytest
from tests.support import command_line
from tests.support.command_line import Ended, Run

SCHEMA = """\
interface Named { name: String }
node Author implements Named { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32?  genre: enum(fiction, science)
            @range(pages, 1..5000)  @check(isbn, "^[0-9-]+$") }
edge Wrote: Author -> Book @card(0..100) { year: I32? }
"""


@pytest.fixture
def operator_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator without any configuration yet."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    for variable in ("OMNIGRAPH_PROFILE", "OMNIGRAPH_BEARER_TOKEN", "OMNIGRAPH_EMBED_PROVIDER", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.fixture
def schema_text() -> str:
    """The schema of the library."""
    return SCHEMA


@pytest.fixture
def run(operator_home: Path) -> Run:
    """Runs `omnigraph` with the words given, as that operator."""
    return command_line.run


@pytest.fixture
def library(run: Run, tmp_path: Path) -> str:
    """An empty graph of books, made by `omnigraph init`."""
    (tmp_path / "library.pg").write_text(SCHEMA)
    address = str(tmp_path / "library")
    assert run("init", address, "--schema", str(tmp_path / "library.pg")) == Ended(0, f"initialized {address}\n", "")
    return address
