"""Calls whose arguments are looked at before anything is done: each must be of the kind that its annotation says.

The same on a graph that is open and on one that is served, so that a mistake is told in the same words by both, and
before a request is sent.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from omnigraph.branch.point import Instant, instant_us
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.validation import require_flag, require_optional_whole_number, require_text

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
# Gives back what is to be used instead of the argument: itself, or a list for what can be gone through only once.
_Check = Callable[[Any, str], Any]

# What arguments are called where the name alone would not tell; the others are called by their names.
_CALLED = {
    "actor": "the actor",
    "message": "the message",
    "branch": "branch name",
    "source": "branch name",
    "into": "branch name",
    "commit": "a commit",
    "tag": "a tag",
    "number": "the number of a commit",
    "limit": "a page limit",
    "page_token": "a page token",
    "cursor": "a cursor",
    "idempotency_key": "an idempotency key",
    "type_name": "the name of a type",
    "entity_id": "the id of an entity",
    "text": "schema.pg",
}


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """A method that refuses arguments of the wrong kind.

    Looked at are texts, whole numbers, yes and no, times, and lists of texts; other kinds are the method's own matter.

    Returns:
        Callable[P, R]: raises `InvalidRequestError` for an argument that is not of its kind.
    """
    signature = expanded_signature(method)
    parameters = signature.parameters
    names = list(parameters)
    checks = {
        name: check
        for name, parameter in parameters.items()
        if (check := _CHECKS.get(parameter.annotation)) is not None
    }

    def looked_at(name: str, value: object) -> object:
        check = checks.get(name)
        return value if check is None else check(value, _CALLED.get(name, name))

    @wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        places: Any = (*map(looked_at, names, args), *args[len(names) :])
        words: Any = {name: looked_at(name, value) for name, value in kwargs.items()}
        return method(*places, **words)

    run.__signature__ = signature  # type: ignore[attr-defined]  # what `help` and `inspect.signature` show
    return run


def checked_methods(kind: type[T]) -> type[T]:
    """Decorate a class: each of its public methods refuses arguments of the wrong type."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and not name.startswith("_"):
            setattr(kind, name, checked(member))
    return kind


def expanded_signature(method: Callable[..., object]) -> inspect.Signature:
    """Spell out `**keywords: Unpack[SomeTypedDict]` as keyword-only parameters, one for each key."""
    signature = inspect.signature(method)
    found: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD or not get_args(parameter.annotation):
            found.append(parameter)
            continue
        [keywords] = get_args(parameter.annotation)
        for name, kind in get_type_hints(keywords).items():
            found.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=...))
    return signature.replace(parameters=found)


def texts(value: Iterable[str], what: str) -> list[str]:
    """Texts as a list; one alone is a list of one, not of its letters.

    Raises:
        InvalidRequestError: it is none, or holds something else.
    """
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise InvalidRequestError(f"{what} must be a list of texts, got {type(value).__name__}")
    return [require_text(text, f"each of {what}") for text in ([value] if isinstance(value, str) else value)]


def first_and_last(commit: str | tuple[str, str]) -> tuple[str, str | None]:
    """The commit that is named, or the first and the last of a range.

    Raises:
        InvalidRequestError: it is neither.
    """
    if isinstance(commit, tuple) and len(commit) == 2:
        return require_text(commit[0], "a commit"), require_text(commit[1], "a commit")
    if not isinstance(commit, str):
        raise InvalidRequestError(f"name a commit, or the first and the last of a range, not {commit!r}")
    return require_text(commit, "a commit"), None


def _flag(value: object, what: str) -> object:
    require_flag(value, what)
    return value


def _number(value: int | None, what: str) -> int:
    found = require_optional_whole_number(value, what)
    if found is None:
        raise InvalidRequestError(f"{what} must be a whole number, got None")
    return found


def _instant(value: Instant, _what: str) -> Instant:
    instant_us(value)
    return value


def _or_nothing(check: _Check) -> _Check:
    return lambda value, what: None if value is None else check(value, what)


_CHECKS: dict[object, _Check] = {
    str: require_text,
    str | None: _or_nothing(require_text),
    int: _number,
    int | None: require_optional_whole_number,
    bool: _flag,
    Iterable[str]: texts,
    Iterable[str] | None: _or_nothing(texts),
    Instant | None: _or_nothing(_instant),
}
