"""What is drawn: nodes and links with labels, groups and details; and the one page that holds it."""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

LABEL_MAX = 36
# How drawings are seen, each after what it needs.
MODULES = ("layout.js", "still.js", "view.js", "hands.js", "details.js")
# Properties that name a thing to people, the best first.
_NAMING = ("name", "title", "label", "subject", "slug")


@dataclass(slots=True)
class Drawing:
    """Nodes and links, added one by one.

    Attributes:
        title: what it is.
        subtitle: how much there is, and of which state.
        layout: "force", or "timeline" where nodes say where they are.
    """

    title: str
    subtitle: str = ""
    layout: str = "force"
    nodes: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict)
    _linked: set[object] = field(default_factory=set)

    def node(
        self,
        key: object,
        label: str,
        group: str,
        *,
        details: Mapping[str, Any] | None = None,
        mark: str | None = None,
        at: tuple[float, float] | None = None,
        lines: list[str] | None = None,
        entity: str | None = None,
    ) -> int:
        """Add a node, unless it is there; its place among the nodes.

        Args:
            key (object): tells nodes apart.
            label (str): what it is called.
            group (str): nodes of a group have one colour.
            details (Mapping[str, Any] | None): shown when it is selected.
            mark (str | None): what became of it: `inserted`, `updated`, `deleted` or `unchanged`.
            at (tuple[float, float] | None): where it is, in a timeline.
            lines (list[str] | None): makes a card of it, with these lines.
            entity (str | None): the id of the node of the graph that it is; its type is the group.

        Returns:
            int: what links name it by.
        """
        if key not in self._places:
            self._places[key] = len(self.nodes)
            short = label if len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"
            made: dict[str, Any] = {"label": short, "group": group, "details": dict(details or {})}
            optional = {"mark": mark, "at": at, "lines": lines, "id": entity}
            self.nodes.append(made | {name: value for name, value in optional.items() if value is not None})
        return self._places[key]

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def place(self, key: object) -> int:
        """The place of a node that is there."""
        return self._places[key]

    def link(
        self,
        source: int,
        target: int,
        label: str,
        *,
        group: str | None = None,
        mark: str | None = None,
        dashed: bool = False,
    ) -> None:
        """Add a link, unless the same is there."""
        link: dict[str, Any] = {"source": source, "target": target, "label": label, "group": group or label}
        if mark is not None:
            link["mark"] = mark
        if dashed:
            link["dashed"] = True
        key = tuple(link.items())
        if key not in self._linked:
            self._linked.add(key)
            self.links.append(link)

    def page(self) -> str:
        """The whole page, as HTML."""
        # Whatever the graph holds, no text of it can end the element it stands in.
        drawing = json.dumps(self.document(), ensure_ascii=False)
        drawing = drawing.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        page = asset("page.html").replace("{{title}}", html.escape(self.title))
        page = page.replace("{{style}}", asset("page.css")).replace("{{scripts}}", _scripts())
        return page.replace("{{drawing}}", drawing)

    def document(self) -> dict[str, Any]:
        """The drawing as a JSON document."""
        document = {"title": self.title, "subtitle": self.subtitle, "layout": self.layout}
        return document | {"nodes": self.nodes, "links": self.links}


def named(properties: Mapping[str, Any], entity_id: str) -> str:
    """What people call an entity."""
    for each in _NAMING:
        value = properties.get(each)
        if isinstance(value, str) and value:
            return value
    return entity_id


def asset(name: str) -> str:
    """One of the files that a page is made of.

    Args:
        name (str): of the file.

    Returns:
        str: its text.
    """
    return files("omnigraph.drawing").joinpath(name).read_text(encoding="utf-8")


def _scripts() -> str:
    """The modules of the page as one: in their order, without the lines that join them elsewhere."""
    joined = "\n".join(asset(name) for name in (*MODULES, "page.js"))
    return re.sub(r"^import [^\n]*\n|^export (?=const|function|class)", "", joined, flags=re.MULTILINE)
