"""Docstrings in the house's form, to Markdown."""

import inspect
import re
from collections.abc import Sequence

_SECTIONS = ("Args", "Returns", "Raises", "Yields", "Attributes", "Invariants")
_NAMED = re.compile(r"^([\w*. ]+?)(?: \((.*?)\))?: (.*)$", re.DOTALL)


def split(docstring: str | None) -> tuple[str, dict[str, list[str]]]:
    """The text before the sections, and the items of each section.

    Args:
        docstring (str | None): as it stands in the code.

    Returns:
        tuple[str, dict[str, list[str]]]: each item on one line.
    """
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in inspect.cleandoc(docstring or "").splitlines():
        if line.rstrip(":") in _SECTIONS and line.endswith(":"):
            current = sections.setdefault(line[:-1], [])
        elif current is None:
            text.append(line)
        elif line.startswith("    ") and not line.startswith("     "):
            current.append(line.strip())
        elif line.strip() and current:
            current[-1] += " " + line.strip()
    return "\n".join(text).strip(), sections


def named(items: Sequence[str]) -> list[tuple[str, str]]:
    """Items of `name (type): words`, as names and words.

    Args:
        items (Sequence[str]): of a section.

    Returns:
        list[tuple[str, str]]: in order.
    """
    found = [_NAMED.match(item) for item in items]
    return [(match[1], match[3]) if match else ("", item) for match, item in zip(found, items, strict=True)]


def markdown(docstring: str | None) -> str:
    """A whole docstring as Markdown.

    Args:
        docstring (str | None): as it stands in the code.

    Returns:
        str: paragraphs and lists.
    """
    text, sections = split(docstring)
    parts = [_indented_as_text(text)]
    for section in ("Attributes", "Args", "Raises"):
        items = named(sections.get(section, []))
        if items:
            title = "" if section == "Args" else f"{section}:\n\n"
            parts.append(title + "\n".join(f"- `{name}`: {words}" if name else f"- {words}" for name, words in items))
    # The signature says the type already.
    parts += [
        f"{name}: {_without_type(' '.join(sections[name]))}" for name in ("Returns", "Yields") if name in sections
    ]
    return "\n\n".join(part for part in parts if part)


def cell(text: str) -> str:
    """Text for a cell of a table.

    Args:
        text (str): any.

    Returns:
        str: on one line, with nothing that ends a cell.
    """
    return " ".join(text.split()).replace("|", "\\|")


def _without_type(text: str) -> str:
    match = re.match(r"^[\w\[\], |.]+: (.*)$", text, re.DOTALL)
    return match[1] if match else text


def _indented_as_text(text: str) -> str:
    """Paragraphs that are set in, as blocks that are only shown."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            paragraphs.append("```text\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)
