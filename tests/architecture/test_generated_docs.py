"""The pages that come from code are committed as the code makes them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LIST = "import docs.generate as g, json; print(json.dumps({path: page() for path, page in g.PAGES.items()}))"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    # In a process of its own: the documentation is no package that the tests could import wherever they are run from.
    made = subprocess.run([sys.executable, "-c", _LIST], cwd=ROOT, capture_output=True, check=True, text=True)
    found: dict[str, str] = json.loads(made.stdout)
    return found


def stale(pages: dict[str, str], folder: Path) -> list[str]:
    """The pages whose file is missing or says something else."""
    return [
        path
        for path, text in pages.items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != text
    ]


def test_every_generated_page_is_committed_as_it_would_be_generated(pages: dict[str, str]) -> None:
    assert pages, "there is a page to look at"
    assert stale(pages, ROOT / "docs") == [], "run `make docs` and commit what it changes"


def test_a_page_that_was_edited_by_hand_or_left_behind_is_noticed(pages: dict[str, str], tmp_path: Path) -> None:
    assert stale(pages, tmp_path) == list(pages)
    for path, text in pages.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("generated", "made", 1), encoding="utf-8")
    assert stale(pages, tmp_path) == list(pages)
