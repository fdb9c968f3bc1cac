"""The site is built without a warning: no broken link, no page that the navigation forgets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a page may fetch: nothing. Links that a reader follows are no concern of this.
_FETCHED = re.compile(
    r"<(?:script|img|link rel=\"(?:stylesheet|preconnect|icon)\")[^>]*(?:src|href)=\"(https?:[^\"]+)\""
)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site, with the program's own word on it."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", folder)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []


def test_every_page_can_be_found_from_the_first(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f'href="{page}"' not in first and page != "index.html"] == []


def test_nothing_but_pages_is_published_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert list(site.rglob("*.py")) == []
    fetched = {found for page in site.rglob("*.html") for found in _FETCHED.findall(page.read_text(encoding="utf-8"))}
    assert fetched == set()


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# One\n\n[another](another.md)\n")
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (docs / "site_hooks.py").write_text((ROOT / "docs" / "site_hooks.py").read_text(encoding="utf-8"))
    (tmp_path / "mkdocs.yml").write_text(text.split("\nnav:\n")[0] + "\nnav:\n  - Home: index.md\n")

    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")

    assert built.returncode != 0
    assert "another.md" in built.stderr
