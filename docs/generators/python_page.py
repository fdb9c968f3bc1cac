"""The page on the Python API, from the public names as they are at run time."""

import ast
import enum
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Unpack, get_args, get_origin

from docs.generators.docstrings import markdown

import omnigraph
from omnigraph.api.load_options import LoadKeywords
from omnigraph.branch.point import PointKeywords
from omnigraph.transaction.options import WriteKeywords

_FIRST = ("init", "open", "verify", "Graph", "Snapshot", "Result", "ResultStream", "PreparedQuery", "OpenOptions")
# Keywords that several calls share, and what each kind is about.
_SHARED: dict[type, str] = {
    PointKeywords: "which state is read",
    WriteKeywords: "options of the write",
    LoadKeywords: "options of the load",
}


def page() -> str:
    """The page.

    Returns:
        str: Markdown.
    """
    public = {name: getattr(omnigraph, name) for name in omnigraph.__all__}
    errors = [name for name, value in public.items() if inspect.isclass(value) and issubclass(value, BaseException)]
    others = sorted(set(public) - set(errors) - set(_FIRST))
    parts = [
        "# Python API",
        "This page is generated from the docstrings; change those, then run `make docs`. For a way in, read "
        "[the guide](../guides/python.md). Names that are not here are not public.",
        *(_entry(name, public[name]) for name in (*_FIRST, *others)),
        *_parts_of_a_graph(public["Graph"], set(map(id, public.values()))),
        *(_keywords(kind) for kind in _SHARED),
        "## Errors",
        "They have [a page of their own](errors.md): " + ", ".join(f"`{name}`" for name in sorted(errors)) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, value: Callable[..., object]) -> str:
    """What a class or a function is, and takes; both can be called."""
    if not inspect.isclass(value):
        return f"## {name}\n\n{_signature(value, name)}\n\n{markdown(value.__doc__)}"
    parts = [f"## {name}", markdown(value.__doc__)]
    if issubclass(value, enum.Enum):
        parts.append("Values: " + ", ".join(f"`{each.value}`" for each in value) + ".")
        return "\n\n".join(parts)
    for member, found in sorted(inspect.getmembers_static(value)):
        if member.startswith("_"):
            continue
        function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        if isinstance(found, property):
            parts.append(f"### {name}.{member} {{ #{name}.{member} }}\n\n{markdown(inspect.getdoc(found))}")
        elif inspect.isfunction(function):
            title = f"### {name}.{member}() {{ #{name}.{member} }}"
            written = _signature(function, member, _meant(value))
            parts.append(f"{title}\n\n{written}\n\n{_with_keywords(function)}")
    return "\n\n".join(part for part in parts if part)


def _parts_of_a_graph(graph: type, known: set[int]) -> list[str]:
    """What hangs on a graph (`graph.tags`, `graph.changes`, …) and has no public name of its own."""
    found = []
    for member, value in sorted(inspect.getmembers_static(graph)):
        kind = inspect.signature(value.fget).return_annotation if isinstance(value, property) and value.fget else None
        if not member.startswith("_") and inspect.isclass(kind) and id(kind) not in known and _is_ours(kind):
            found.append(_entry(f"graph.{member}", kind))
    return found


def _keywords(kind: type) -> str:
    """Describe keywords that several calls share."""
    return f"## Keywords: {_SHARED[kind]} {{ #{kind.__name__} }}\n\n{markdown(kind.__doc__)}"


def _with_keywords(function: Callable[..., object]) -> str:
    """Describe a method, with a link to the keywords that it shares with others."""
    described = markdown(inspect.getdoc(function))
    kind = _shared_by(function)
    if kind is None:
        return described
    return f"{described}\n\nKeywords: {_SHARED[kind]}; see [Keywords](#{kind.__name__})."


def _shared_by(function: Callable[..., object]) -> type | None:
    """Find the keywords that a method takes as `**name: Unpack[Keywords]`."""
    annotations = inspect.unwrap(function).__annotations__.values()
    return next((get_args(each)[0] for each in annotations if get_origin(each) is Unpack), None)


def _declared(kind: type) -> list[ast.AnnAssign]:
    """List the keywords of a kind, its bases first, as they are written in the code."""
    bases = [base for base in _SHARED if base.__annotations__.keys() < kind.__annotations__.keys()]
    [parsed] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(parsed, ast.ClassDef)
    own = [each for each in parsed.body if isinstance(each, ast.AnnAssign)]
    return [each for base in bases for each in _declared(base)] + own


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("omnigraph.")


def _meant(kind: type) -> dict[str, str]:
    """By the names of type variables that methods of a class are written with, what they stand for there."""
    found = {}
    for base in (base for each in kind.__mro__ for base in each.__dict__.get("__orig_bases__", ())):
        variables = getattr(get_origin(base), "__parameters__", ())
        for variable, argument in zip(variables, get_args(base), strict=False):
            if inspect.isclass(argument):
                found[variable.__name__] = argument.__name__
    return found


class _Filled(ast.NodeTransformer):
    """Puts names in the place of type variables."""

    def __init__(self, meant: Mapping[str, str]) -> None:
        self._meant = meant

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._meant.get(node.id, node.id))


def _signature(function: Callable[..., object], name: str, meant: Mapping[str, str] = {}) -> str:
    """As it is written in the code: what `inspect` prints depends on the version of Python."""
    [parsed] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    written = _Filled(meant).visit(parsed)
    assert isinstance(written, ast.FunctionDef)
    arguments = written.args
    arguments.args = [each for each in arguments.args if each.arg not in ("self", "cls")]
    returns = f" -> {ast.unparse(written.returns)}" if written.returns else ""
    shared = _shared_by(function)
    for keyword in [] if shared is None else _declared(shared):
        arguments.kwarg = None
        arguments.kwonlyargs.append(ast.arg(ast.unparse(keyword.target), keyword.annotation))
        arguments.kw_defaults.append(ast.Constant(...))
    for each in (*arguments.args, *arguments.kwonlyargs):
        if isinstance(each.annotation, ast.Constant):  # quoted because of the order of imports; of no interest here
            each.annotation = ast.Name(str(each.annotation.value))
    line = f"{name}({ast.unparse(arguments)}){returns}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {each},\n" for each in _each(arguments)) + f"){returns}"
    return f"```text\n{line}\n```"


def _each(arguments: ast.arguments) -> list[str]:
    """The arguments, one by one."""
    plain, defaults = arguments.args, [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    shown = [_shown(each, default) for each, default in zip(plain, defaults, strict=True)]
    if arguments.vararg:
        shown.append("*" + ast.unparse(arguments.vararg))
    elif arguments.kwonlyargs:
        shown.append("*")
    shown += [_shown(*both) for both in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        shown.append("**" + ast.unparse(arguments.kwarg))
    return shown


def _shown(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")
