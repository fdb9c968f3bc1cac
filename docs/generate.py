"""Writes the pages of the documentation that come from code: `python -m docs.generate`, or `make docs`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generators import cli_page, errors_page, formats_page, http_page, limits_page, python_page
from tests.support.conflict_table import KINDS, Outcome, Relation, cells

_DOCS = Path(__file__).parent

_SHOWN = {
    Outcome.REBASE: "rebase",
    Outcome.REDO: "*redo*",
    Outcome.TAKEN: "*redo*, taken",
    Outcome.REFUSE: "**refuse**",
}


def conflicts() -> str:
    """The page on lost races.

    Returns:
        str: Markdown.
    """
    parts = [
        "# When another write was faster",
        "This page is generated from the table that the tests carry out; change that, then run `make docs`.",
        "Two writes of one branch may be under way at once. One publishes first; this page says what becomes of the "
        "other, which had begun before and finds the head moved when it comes to publish.",
        "- **rebase**: it is published on top of the first. The operation does not run again, and its rows are not "
        "written again.\n"
        "- **redo**: the operation runs again on the new head, which means the same thing, and is published.\n"
        "- **redo, taken**: it runs again, and is then refused with a key conflict: what it was to add is there.\n"
        "- **refuse**: it is refused with a conflict that names what changed, and the versions expected and found. "
        "Only the caller can say what the write means now.",
        "Whatever the outcome, the content is that of the writes published, one after the other.",
        "Below, each row is a second write and each column the first. The kinds are:",
        "\n".join(f"- `{name}`: {_explained(text)}" for name, text in KINDS.items()),
    ]
    for relation in Relation:
        parts += [f"## {relation.capitalize()}", _table(relation)]
    parts += [
        "## Branches",
        "- A write whose branch was deleted meanwhile, or deleted and made again, is refused, whatever its kind.\n"
        "- Deleting a branch succeeds whatever is written to it meanwhile; what was written is deleted with it.\n"
        "- Of two that make a branch of one name at once, one succeeds and the other is told that it exists.",
        "## Conditions of the caller",
        "With `expected_table_versions`, two writes that expect one version of a table end as one success and one "
        "refusal with `ExpectedVersionMismatch`, whatever their rows. With `if_commit`, a write is refused as soon as "
        "the head is another commit, whatever was written.",
    ]
    return "\n\n".join(parts) + "\n"


def _explained(text: str) -> str:
    """The explanation of a kind, without its long name where that says nothing new."""
    name, _, rest = text.partition(": ")
    return rest if name in KINDS else f"{name}; {rest}"


def _table(relation: Relation) -> str:
    outcome = {(cell.second, cell.first): cell.outcome for cell in cells() if cell.relation is relation}
    lines = [
        "| second \\ first | " + " | ".join(f"`{kind}`" for kind in KINDS) + " |",
        "|---" * (len(KINDS) + 1) + "|",
    ]
    lines += [
        f"| `{second}` | " + " | ".join(_SHOWN[outcome[second, first]] for first in KINDS) + " |" for second in KINDS
    ]
    return "\n".join(lines)


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/cli.md": cli_page.page,
    "reference/conflicts.md": conflicts,
    "reference/errors.md": errors_page.page,
    "reference/formats.md": formats_page.page,
    "reference/http.md": http_page.page,
    "reference/limits.md": limits_page.page,
    "reference/python.md": python_page.page,
}
"""Every generated page, by its path below this folder."""


def main() -> None:
    """Write every page."""
    for path, page in PAGES.items():
        file = _DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
