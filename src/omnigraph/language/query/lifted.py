"""Auto-parameterization: compile texts that differ only in string literals once.

Programs often write keys into the text of a query. All such texts differ, and compiling one takes longer than running
it. So a text is split at its quotes. If the same pieces occur again with other strings, the query is compiled with a
placeholder for each string. If a placeholder occurs in the compiled query as a plain constant and nowhere else, the
string cannot have influenced the plan: a parameter replaces it. A string that has (an enum value, a date, a column
name) stays as it is, and only texts with the same string share the plan.

Results and errors are those of the text itself: an invalid text never reaches a shared plan.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query.compile import CompiledQuery, compile, compile_uncached, find_compiled
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
    """Marker for pieces that occurred once: most never occur again, so nothing was compiled for them."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """Plan shared by all texts of the same pieces.

    Attributes:
        compiled: query with parameters in place of some strings; None if no string can be lifted.
        lifted: index of the string by parameter name.
        fixed: required values of the other strings.
    """

    compiled: CompiledQuery | None
    lifted: tuple[tuple[str, int], ...] = ()
    fixed: tuple[tuple[int, str], ...] = ()


_shapes: LruCache[Hashable, _Seen | _Shared] = LruCache(limits.COMPILED_QUERIES_MAX)


def compile_lifted(
    text: str | bytes, schema: Schema, *, name: str | None, schema_digest: str, objects: bool = False
) -> tuple[CompiledQuery, Mapping[str, Value]]:
    """Compile one query of a text, or reuse the plan of similar texts.

    Returns:
        The compiled query, and values of the parameters that its text does not declare.

    Raises:
        ParseError: a syntax or type error.
        InvalidRequestError: the query does not exist.
        LimitError: the text is too long.
    """
    known = find_compiled(text, name, schema_digest, objects=objects)
    if known is not None:
        return known, NO_VALUES
    cut = _split_strings(text)
    if cut is None:
        return compile(text, schema, name=name, schema_digest=schema_digest, objects=objects), NO_VALUES
    pieces, strings = cut
    key = (pieces, name, schema_digest, objects)
    shared = _shapes.get(key)
    if isinstance(shared, _Seen):
        shared = _compile_shared(pieces, strings, schema, name, schema_digest, objects=objects)
        _shapes.put(key, shared)
    elif shared is None:
        _shapes.put(key, _Seen())
    if shared is None or shared.compiled is None or any(strings[at] != fixed for at, fixed in shared.fixed):
        return compile(text, schema, name=name, schema_digest=schema_digest, objects=objects), NO_VALUES
    return shared.compiled, {parameter: strings[at] for parameter, at in shared.lifted}


def _split_strings(text: str | bytes) -> tuple[Pieces, list[str]] | None:
    """Split a text into the pieces outside its strings and the strings; None if that is ambiguous."""
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


def _compile_shared(
    pieces: Pieces, strings: list[str], schema: Schema, name: str | None, schema_digest: str, *, objects: bool
) -> _Shared:
    """Compile the plan for all texts of these pieces."""

    def compiled(marked: set[int]) -> CompiledQuery | None:
        written = [_MARK.format(at) if at in marked else string for at, string in enumerate(strings)]
        text = "".join(f'{piece}"{string}"' for piece, string in zip(pieces, written, strict=False)) + pieces[-1]
        try:
            made = compile_uncached(text, schema, name, schema_digest, objects=objects)
            return _with_parameters(made, marked)
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
    """Return the query with parameters for placeholders; None if one is not a constant, or the query writes."""
    if not isinstance(compiled.plan, ReadPlan):
        return None
    by_mark = {_MARK.format(at): _NAME.format(at) for at in marked}
    plan = _replace_placeholders(compiled.plan, by_mark)
    rest = repr(plan)
    return None if any(repr(mark)[1:-1] in rest for mark in by_mark) else replace(compiled, plan=plan)


def _replace_placeholders(value: Any, by_mark: Mapping[str, str]) -> Any:  # noqa: ANN401  (any part of a plan)
    match value:
        case ex.Constant(value=str() as mark, type=PropertyType() as type_) if mark in by_mark:
            return ex.Parameter(by_mark[mark], type_)
        case tuple():
            return tuple(_replace_placeholders(item, by_mark) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            inside = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
            return replace(value, **{name: _replace_placeholders(field, by_mark) for name, field in inside.items()})
        case _:
            return value
