"""What the site does beyond Markdown: folders in the navigation, and links to files that are not on it."""

import re
from pathlib import Path
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:tests|src|benchmarks)/[^)]*\)")


def on_config(config: Any) -> Any:  # noqa: ANN401  (the site builder's own, which has no types)
    """Put the pages of a folder where the navigation says `folder/*`, but for those it names itself.

    Args:
        config (Any): the site's configuration.

    Returns:
        Any: the same.
    """
    docs = Path(config["docs_dir"])
    config["nav"] = _expanded(config["nav"], docs, set(_named(config["nav"])))
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401  (the site builder's own, which has no types)
    """Leave only the words of links to files of the checkout, which are no pages of the site.

    Args:
        markdown (str): of a page.

    Returns:
        str: the same without such links.
    """
    return _OUTSIDE.sub(r"\1", markdown)


def _named(nav: Any) -> list[str]:  # noqa: ANN401  (the site builder's own, which has no types)
    if isinstance(nav, str):
        return [nav]
    return [path for each in (nav if isinstance(nav, list) else nav.values()) for path in _named(each)]


def _expanded(nav: list[Any], docs: Path, named: set[str]) -> list[Any]:
    found: list[Any] = []
    for item in nav:
        title, value = next(iter(item.items())) if isinstance(item, dict) else (None, item)
        if isinstance(value, list):
            found.append({title: _expanded(value, docs, named)})
        elif value.endswith("/*"):
            pages = [page.relative_to(docs).as_posix() for page in sorted(docs.glob(f"{value}.md"))]
            rest = [page for page in pages if page not in named]
            # With a title they are a section of their own, which is not there where it would be empty.
            found += rest if title is None else [{title: rest}] * bool(rest)
        else:
            found.append(item)
    return found
