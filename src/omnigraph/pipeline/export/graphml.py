"""A graph as GraphML, which most tools that draw or analyse graphs read.

Ids are `Type:id`, since in GraphML all nodes share one set of names. Properties keep their types where GraphML has
them; lists and vectors are JSON texts, days and instants ISO texts, blobs base64. Absent properties are left out.
Characters that XML cannot hold become U+FFFD.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import pyarrow as pa
import pyarrow.compute

from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.pipeline.export.json_lines import joined_bytes
from omnigraph.pipeline.export.json_text import plain_texts

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_TYPES: Mapping[Scalar, str] = {
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "long",
    Scalar.U32: "long",
    Scalar.F32: "float",
    Scalar.F64: "double",
}
# A carriage return and white space in attributes would be changed by any XML reader.
_ESCAPES = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\r", "&#13;"),
    ("\n", "&#10;"),
    ("\t", "&#9;"),
)
_NOT_IN_XML = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x{FFFE}\\x{FFFF}]"


def graphml_head(entities: Sequence[EntityType]) -> bytes:
    """Everything before the first node.

    Args:
        entities: the types that will come.

    Returns:
        bytes: the declaration, and a key for every property of every type.
    """
    keys = [
        f'<key id={quoteattr(_key(entity, item.name))} for="{entity.kind}" '
        f'attr.name={quoteattr(item.name)} attr.type="{_type(item.type)}"/>'
        for entity in entities
        for item in entity.properties
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            '<key id="type" for="all" attr.name="type" attr.type="string"/>',
            *keys,
            '<graph edgedefault="directed">',
            "",
        ]
    ).encode()


GRAPHML_END = b"</graph>\n</graphml>\n"


def graphml_elements(entity: EntityType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Rows as elements, one per line.

    Args:
        entity: their type.
        batches: the rows.

    Yields:
        pa.Buffer: some elements.
    """
    for rows in batches:
        yield _elements(entity, rows)


def _elements(entity: EntityType, rows: pa.RecordBatch) -> pa.Buffer:
    name = quoteattr(entity.name)[1:-1]
    parts: list[Any] = [f'<{entity.kind} id="{name}:', _escaped(rows.column(ID))]
    if isinstance(entity, EdgeType):
        parts += [f'" source="{quoteattr(entity.from_type.type_name)[1:-1]}:', _escaped(rows.column(SRC))]
        parts += [f'" target="{quoteattr(entity.to_type.type_name)[1:-1]}:', _escaped(rows.column(DST))]
    parts.append(f'"><data key="type">{name}</data>')
    for item in entity.properties:
        texts = _escaped(plain_texts(rows.column(item.name)))
        open_tag = pa.scalar(f"<data key={quoteattr(_key(entity, item.name))}>", texts.type)
        close_tag = pa.scalar("</data>", texts.type)
        element = pc.binary_join_element_wise(open_tag, texts, close_tag, pa.scalar("", texts.type))
        parts.append(pc.fill_null(element, ""))
    parts.append(f"</{entity.kind}>\n")
    return joined_bytes(parts)


def _escaped(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    for character, escape in _ESCAPES:
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, pattern=character, replacement=escape)
    if pc.any(pc.match_substring_regex(texts, _NOT_IN_XML)).as_py():
        texts = pc.replace_substring_regex(texts, pattern=_NOT_IN_XML, replacement="�")
    return texts


def _key(entity: EntityType, name: str) -> str:
    return f"{entity.kind}.{entity.name}.{name}"


def _type(of: PropertyType) -> str:
    return "string" if of.list else _TYPES.get(of.scalar, "string")
