"""The page on limits, from the module that names them."""

import re
from pathlib import Path

from omnigraph import limits


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    parts = [
        "# Limits",
        "This page is generated from `omnigraph/limits.py`; change that, then run `make docs`.",
        "Every bound has a name that ends with its unit (`S` seconds, `MS` milliseconds). Those that users set are in "
        "[`OpenOptions`](python.md#openoptions), `QueryLimits` and the arguments of single calls; the others are fixed "
        "in a release.",
    ]
    for words, names in _groups(Path(limits.__file__).read_text(encoding="utf-8")):
        rows = [f"| `{name}` | {_shown(name)} | {note} |" for name, note in names]
        parts += [words] * bool(words) + ["\n".join(["| limit | value | |", "|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _groups(source: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The comment before some limits, and their names with what stands behind them."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    words: list[str] = []
    for line in source.splitlines():
        match = re.match(r"^([A-Z][A-Z0-9_]*) = [^#]*(?:# *(.*))?$", line)
        if line.startswith("# ---"):
            continue
        if line.startswith("#"):
            words.append(line.removeprefix("#").strip())
        elif match:
            if words or not found:
                found.append((" ".join(words), []))
                words = []
            found[-1][1].append((match[1], match[2] or ""))
        elif line and not line.startswith("assert"):
            words = []
    return [(_clean(text), names) for text, names in found if names]


def _clean(text: str) -> str:
    return text.replace("|", "\\|")


def _shown(name: str) -> str:
    value = getattr(limits, name)
    if isinstance(value, int) and "BYTES" in name:
        for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
            if value >= 1024**power and value % 1024**power == 0:
                return f"{value // 1024**power:,} {unit}"
    return f"{value:,}"
