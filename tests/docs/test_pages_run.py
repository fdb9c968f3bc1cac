"""Every example in the documentation runs as it stands."""

from pathlib import Path

import pytest
from tests.support.guides import blocks, run_guide

from omnigraph.language import schema
from omnigraph.language.query import parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(ROOT).as_posix(): page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))}
# Pages that the tests of their part run: those of Spark share one session there.
ELSEWHERE = {
    "docs/guides/analytics.md": "tests/spark/test_guides.py",
    "docs/guides/branches.md": "tests/unit/api/test_branches_guide.py",
    "docs/guides/changes.md": "tests/unit/api/test_history_guides.py",
    "docs/guides/load.md": "tests/spark/test_guides.py",
    "docs/guides/operate.md": "tests/unit/api/test_operating_guides.py",
    "docs/guides/prune.md": "tests/unit/api/test_prune_guide.py",
    "docs/guides/python.md": "tests/unit/api/test_python_guide.py",
    "docs/guides/recover.md": "tests/unit/api/test_operating_guides.py",
    "docs/guides/spark.md": "tests/spark/test_guides.py",
    "docs/guides/time.md": "tests/unit/api/test_history_guides.py",
}
HERE = [name for name, page in PAGES.items() if name not in ELSEWHERE and any(each.runs for each in blocks(page))]
# Not carried out: what is typed in a checkout, and what only shows a form.
SHOWN = {"sh", "text", "ebnf"}
KNOWN = {"python", "console", "pg", "gq", "json", "yaml"} | SHOWN


@pytest.fixture(autouse=True)
def nobody_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and an operator without configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)


@pytest.mark.parametrize("name", HERE)
def test_every_example_of_the_page_runs_in_order(name: str) -> None:
    assert run_guide(PAGES[name]) > 0


def test_pages_left_to_other_tests_are_run_by_them() -> None:
    missing = [name for name, test in ELSEWHERE.items() if f'"{Path(name).name}"' not in (ROOT / test).read_text()]
    assert missing == []


def test_every_block_has_a_language_that_is_run_or_says_that_it_is_only_shown() -> None:
    unknown = [
        (name, block.line, block.language)
        for name, page in PAGES.items()
        for block in blocks(page)
        if block.language not in KNOWN
    ]
    assert unknown == []
    bare = [
        name
        for name, page in PAGES.items()
        if sum(line.startswith("```") for line in page.read_text(encoding="utf-8").splitlines())
        != 2 * len(blocks(page))
    ]
    assert bare == [], "a block without a language is neither run nor known to be only shown"


def test_every_make_target_that_is_named_exists() -> None:
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line}
    typed = [line.split() for page in PAGES.values() for block in blocks(page) if block.language == "sh"
             for line in block.text.splitlines()]  # fmt: skip
    made = [words[1] for words in typed if words[:1] == ["make"]]
    assert made, "some page says what to type"
    assert [target for target in made if target not in targets] == []


@pytest.mark.parametrize("language", ["pg", "gq"])
def test_every_schema_and_query_shown_can_be_read(language: str) -> None:
    read = schema.parse if language == "pg" else parse
    shown = [block.text for page in PAGES.values() for block in blocks(page) if block.language == language]
    assert len(shown) > 5
    for text in shown:
        read(text)


def test_a_command_that_prints_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ omnigraph version\nomnigraph …\ninternal-schema 6\n```\n")
    assert run_guide(page) == 1
    page.write_text("```console\n$ omnigraph version\nomnigraph of another name\n```\n")
    with pytest.raises(AssertionError, match="prints"):
        run_guide(page)


def test_a_command_that_fails_without_the_page_saying_so_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ omnigraph query --store nowhere -e 'query q() { }'\n…\n```\n")
    with pytest.raises(AssertionError, match="code 1"):
        run_guide(page)
