"""What the site does beyond Markdown: folders in the navigation, and links to files that are not on it."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

# One line of the navigation: a page, or a title with a page or lines of its own.
_Item = str | dict[str, "str | list[_Item]"]
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:tests|src|benchmarks)/[^)]*\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder where the navigation says `folder/*`, but for those it names itself.

    Args:
        config (MkDocsConfig): the site's configuration.

    Returns:
        MkDocsConfig: the same.
    """
    nav: list[_Item] = config.nav or []
    config.nav = _expanded(nav, Path(config.docs_dir), set(_named(nav)))
    return config


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave only the words of links to files of the checkout, which are no pages of the site.

    Args:
        markdown (str): of a page.

    Returns:
        str: the same without such links.
    """
    return _OUTSIDE.sub(r"\1", markdown)


def _named(nav: list[_Item] | _Item) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [path for each in (nav if isinstance(nav, list) else nav.values()) for path in _named(each)]


def _expanded(nav: list[_Item], docs: Path, named: set[str]) -> list[_Item]:
    found: list[_Item] = []
    for item in nav:
        title, value = next(iter(item.items())) if isinstance(item, dict) else ("", item)
        if isinstance(value, list):
            found.append({title: _expanded(value, docs, named)})
        elif isinstance(value, str) and value.endswith("/*"):
            pages = [page.relative_to(docs).as_posix() for page in sorted(docs.glob(f"{value}.md"))]
            rest: list[_Item] = [page for page in pages if page not in named]
            # With a title they are a section of their own, which is not there where it would be empty.
            found += [{title: rest}] * bool(rest) if title else rest
        else:
            found.append(item)
    return found
