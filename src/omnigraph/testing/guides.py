"""Guides whose examples run as they stand."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_guide(guide: Path) -> int:
    """Run every Python example of a guide, from top to bottom, in the folder the process is in.

    Args:
        guide (Path): a Markdown file.

    Returns:
        int: how many there were.

    Raises:
        AssertionError: whatever an example asserts; other errors as they are.
    """
    text = guide.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    found = list(_BLOCK.finditer(text))
    for block in found:
        # Blank lines before it, so that a failure points to the line of the guide.
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + block[1], str(guide), "exec"), names)
    return len(found)
