"""Texts that differ in the strings they hold: compiled once, with the strings as values of the run.

Programs often write keys into the text of a query. Such texts are all different, and compiling one takes longer than
answering it. So a text is cut at its quotes. If the same pieces come a second time around other strings, the query is
compiled with a mark in the place of each string. Where a mark has come out of the compiler as a plain constant, and
nowhere else, its string cannot have had a say in the plan: a parameter takes its place. A string that had a say (a
member of an enumeration, a date, the name of a column) stays as it is written, and only texts that agree in it share
the plan.

Answers and errors are those of the text itself: what is wrong with a text never gets as far as a shared plan.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query.compile import CompiledQuery, compile, compile_anew, compiled_before
from omnigraph.lru import LruCache
from omnigraph.model.schema import Schema
from omnigraph.model.types import PropertyType

Pieces = tuple[str, ...]

NO_VALUES: Mapping[str, Value] = {}
# Of no use in any text, so that a mark is not taken for something somebody wrote.
_MARK_START = "\ue0f3"
_MARK = _MARK_START + "{}\ue0f4"
# No parameter can be called so.
_NAME = "#text{}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Pieces that came once: most come never again, so nothing was compiled for them."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """A plan for all texts of the same pieces.

    Attributes:
        compiled: with parameters in the place of some strings; None where no string can be lifted.
        lifted: by the names of these parameters, which string.
        fixed: what the other strings must be.
    """

    compiled: CompiledQuery | None
    lifted: tuple[tuple[str, int], ...] = ()
    fixed: tuple[tuple[int, str], ...] = ()


_shapes: LruCache[Hashable, _Seen | _Shared] = LruCache(limits.COMPILED_QUERIES_MAX)


def compile_lifted(
    text: str | bytes, schema: Schema, *, name: str | None, schema_digest: str
) -> tuple[CompiledQuery, Mapping[str, Value]]:
    """Compile one query of a text, or take the plan that texts like it share.

    Args:
        text: a query file.
        schema: what it is about.
        name: which query; may be left out where there is only one.
        schema_digest: of the schema.

    Returns:
        The compiled query, and values for parameters of its plan that its text does not declare.

    Raises:
        ParseError: the text is wrong, or the query not well typed.
        InvalidRequestError: there is no such query.
        LimitError: the text is too long.
    """
    known = compiled_before(text, name, schema_digest)
    if known is not None:
        return known, NO_VALUES
    cut = _cut(text)
    if cut is None:
        return compile(text, schema, name=name, schema_digest=schema_digest), NO_VALUES
    pieces, strings = cut
    key = (pieces, name, schema_digest)
    shared = _shapes.get(key)
    if isinstance(shared, _Seen):
        shared = _share(pieces, strings, schema, name, schema_digest)
        _shapes.put(key, shared)
    elif shared is None:
        _shapes.put(key, _Seen())
    if shared is None or shared.compiled is None or any(strings[at] != fixed for at, fixed in shared.fixed):
        return compile(text, schema, name=name, schema_digest=schema_digest), NO_VALUES
    return shared.compiled, {parameter: strings[at] for parameter, at in shared.lifted}


def _cut(text: str | bytes) -> tuple[Pieces, list[str]] | None:
    """What stands outside the strings of a text, and the strings; None where that is not plain to see."""
    if not isinstance(text, str) or len(text) > limits.LIFTED_TEXT_CHARACTERS_MAX or "\\" in text or "\0" in text:
        return None
    if not text.isascii():
        if _MARK_START in text:
            return None
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
    parts = text.split('"')
    pieces = tuple(parts[0::2])
    if not 3 <= len(parts) <= 2 * limits.LIFTED_STRINGS_MAX + 1 or len(parts) % 2 == 0:
        return None
    # In a comment a quote means nothing.
    if any("//" in piece or "/*" in piece for piece in pieces):
        return None
    return pieces, parts[1::2]


def _share(pieces: Pieces, strings: list[str], schema: Schema, name: str | None, schema_digest: str) -> _Shared:
    """The plan for all texts of these pieces."""

    def compiled(marked: set[int]) -> CompiledQuery | None:
        written = [_MARK.format(at) if at in marked else string for at, string in enumerate(strings)]
        text = "".join(f'{piece}"{string}"' for piece, string in zip(pieces, written, strict=False)) + pieces[-1]
        try:
            return _with_parameters(compile_anew(text, schema, name, schema_digest), marked)
        except GraphError:
            return None

    marked = set(range(len(strings)))
    found = compiled(marked)
    if found is None and len(strings) > 1:
        marked = {at for at in marked if compiled({at}) is not None}
        found = compiled(marked) if marked else None
    if found is None:
        return _Shared(None)
    lifted = tuple((_NAME.format(at), at) for at in sorted(marked))
    return _Shared(found, lifted, tuple((at, string) for at, string in enumerate(strings) if at not in marked))


def _with_parameters(compiled: CompiledQuery, marked: set[int]) -> CompiledQuery | None:
    """The query with parameters in the place of marks; None where a mark is anything but a constant, or no read."""
    if not isinstance(compiled.plan, ReadPlan):
        return None
    by_mark = {_MARK.format(at): _NAME.format(at) for at in marked}
    plan = _replaced(compiled.plan, by_mark)
    rest = repr(plan)
    return None if any(repr(mark)[1:-1] in rest for mark in by_mark) else replace(compiled, plan=plan)


def _replaced(value: Any, by_mark: Mapping[str, str]) -> Any:  # noqa: ANN401  (any part of a plan)
    match value:
        case ex.Constant(value=str() as mark, type=PropertyType() as type_) if mark in by_mark:
            return ex.Parameter(by_mark[mark], type_)
        case tuple():
            return tuple(_replaced(each, by_mark) for each in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            inside = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            return replace(value, **{name: _replaced(each, by_mark) for name, each in inside.items()})
        case _:
            return value
