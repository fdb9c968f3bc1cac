"""Drawings: nodes and links with labels, groups and details, as a document or an HTML page."""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

LABEL_MAX = 36
# The scripts of a page, in the order of their dependencies.
MODULES = ("layout.js", "still.js", "view.js", "hands.js", "details.js")
# Properties that can be the label of an entity, the best first.
_NAMING = ("name", "title", "label", "subject", "slug")


@dataclass(slots=True)
class Drawing:
    """Nodes and links, added one by one.

    Attributes:
        title: the heading of the page.
        subtitle: counts, and the state that is drawn.
        layout: "force", or "timeline" if nodes have positions.
    """

    title: str
    subtitle: str = ""
    layout: str = "force"
    nodes: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    _indexes: dict[object, int] = field(default_factory=dict)
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
        """Add a node unless there is one with this key, and return its index for links.

        Args:
            key: identifies the node in the drawing.
            label: shortened if it is long.
            group: nodes of a group have the same colour.
            details: shown when the node is selected.
            mark: `inserted`, `updated`, `deleted` or `unchanged`.
            at: the position in a timeline.
            lines: draws the node as a card with these lines.
            entity: the id of the node in the graph; its type is the group.
        """
        if key not in self._indexes:
            self._indexes[key] = len(self.nodes)
            short = label if len(label) <= LABEL_MAX else f"{label[: LABEL_MAX - 1]}…"
            node: dict[str, Any] = {"label": short, "group": group, "details": dict(details or {})}
            optional = {"mark": mark, "at": at, "lines": lines, "id": entity}
            self.nodes.append(node | {name: value for name, value in optional.items() if value is not None})
        return self._indexes[key]

    def __contains__(self, key: object) -> bool:
        return key in self._indexes

    def index(self, key: object) -> int:
        """Return the index of a node."""
        return self._indexes[key]

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
        """Add a link between two nodes, by index, unless there is an equal one."""
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
        """Return the drawing as one HTML page."""
        # Escaped so that no text of the graph can close the script element.
        drawing = json.dumps(self.document(), ensure_ascii=False)
        drawing = drawing.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        page = _read_asset("page.html").replace("{{title}}", html.escape(self.title))
        page = page.replace("{{style}}", _read_asset("page.css")).replace("{{scripts}}", _bundle_scripts())
        return page.replace("{{drawing}}", drawing)

    def document(self) -> dict[str, Any]:
        """Return the drawing as a JSON document."""
        document = {"title": self.title, "subtitle": self.subtitle, "layout": self.layout}
        return document | {"nodes": self.nodes, "links": self.links}


def choose_label(properties: Mapping[str, Any], entity_id: str) -> str:
    """Return the value of the first property that names the entity, else its id."""
    for name in _NAMING:
        value = properties.get(name)
        if isinstance(value, str) and value:
            return value
    return entity_id


def _read_asset(name: str) -> str:
    return files("omnigraph.drawing").joinpath(name).read_text(encoding="utf-8")


def _bundle_scripts() -> str:
    """Concatenate the scripts of the page, without import and export."""
    joined = "\n".join(_read_asset(name) for name in (*MODULES, "page.js"))
    return re.sub(r"^import [^\n]*\n|^export (?=const|function|class)", "", joined, flags=re.MULTILINE)
