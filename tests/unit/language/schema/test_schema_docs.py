"""What the reference says about the schema language is true."""

import re
from pathlib import Path

import pytest

from omnigraph import limits
from omnigraph.language import schema as language
from omnigraph.language.schema.lint import CATALOGUE
from omnigraph.model.schema_change_document import STEP_KINDS
from omnigraph.model.types import Scalar

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "schema-language.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", blocks("pg"), ids=lambda block: block.split("\n", 1)[0][:40])
def test_every_schema_in_the_reference_is_accepted_without_a_warning(block: str) -> None:
    language.accept(block)

    assert language.lint(language.parse(block)) == ()


def test_the_reference_shows_enough_schemas() -> None:
    assert len(blocks("pg")) >= 9


def test_the_python_in_the_reference_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python")
    exec(compile(block, str(PAGE), "exec"), {})  # the block is our own page's

    printed = capsys.readouterr().out
    promised = re.findall(r"# (\[.*)", block)
    assert promised
    assert all(line in printed for line in promised)


def test_the_mistake_in_the_reference_is_reported_that_way() -> None:
    shown = next(block for block in blocks("text") if block.startswith("parse error"))

    with pytest.raises(ValueError, match="unexpected") as raised:
        language.parse("node Person {\n  name: String,\n}")
    assert str(raised.value) == shown.rstrip("\n")


def test_every_type_step_and_emitted_code_is_in_the_reference() -> None:
    names = [*Scalar, *STEP_KINDS, *(each.code for each in CATALOGUE.values() if each.is_emitted)]

    assert [name for name in names if f"`{name}" not in TEXT and name != "unsupported_change"] == []


def test_the_limits_in_the_reference_are_the_limits() -> None:
    assert f"at most {limits.LANGUAGE_TEXT_BYTES_MAX // 1024**2} MiB" in TEXT
    assert f"n ≤ {limits.VECTOR_DIMENSION_MAX}" in TEXT


def test_the_links_within_the_reference_lead_somewhere() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    }

    assert set(re.findall(r"\]\(#([^)]*)\)", TEXT)) <= headings
