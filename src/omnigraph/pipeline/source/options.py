"""What may be said to the data source, and what it means. Whatever nobody would heed is refused: somebody means it."""

from collections.abc import Mapping, Sequence

from omnigraph.errors import InvalidRequestError
from omnigraph.model.suggest import explain_unknown
from omnigraph.transaction.mode import Mode

_BOTH = ("graph", "type", "branch")
_READING = (*_BOTH, "versionAsOf", "timestampAsOf", "tag", "columns", "filter", "taskRows")
_WRITING = (*_BOTH, "mode", "actor", "message", "idempotencyKey", "prunePrevious", "engine")
_CODE = "unknown_option"


def refuse_unknown(options: Mapping[str, str], *, reading: bool | None = None) -> None:
    """Refuse options that say nothing here.

    Args:
        options (Mapping[str, str]): as the caller gave them, in any case.
        reading (bool | None): whether they are for reading; None where that is not known yet.

    Raises:
        InvalidRequestError: there is no such option, or it is for the other direction (`unknown_option`).
    """
    known = {each.lower(): each for each in (*_READING, *_WRITING)}
    fitting = {True: _READING, False: _WRITING, None: tuple(known.values())}[reading]
    for given in options:
        name = known.get(given.lower())
        if name is None and given.lower() == "path":
            # Spark makes this of what is given to `load` or `save`.
            raise InvalidRequestError("a graph is named with the option 'graph', not with a path", code=_CODE)
        if name is None:
            raise InvalidRequestError(explain_unknown("there is no option", given, fitting), code=_CODE)
        if name not in fitting:
            other = "writing" if reading else "reading"
            raise InvalidRequestError(f"the option '{name}' is for {other}: leave it out here", code=_CODE)


def mode_of(options: Mapping[str, str], *, overwrite: bool) -> str:
    """What becomes of rows that are there.

    Args:
        options (Mapping[str, str]): what was said.
        overwrite (bool): whether Spark's own mode of saving is `overwrite`.

    Returns:
        str: append, merge or overwrite.

    Raises:
        InvalidRequestError: there is no such mode, or the two contradict each other.
    """
    said = one_of(options, "mode", tuple(Mode))
    if overwrite and said not in (None, Mode.OVERWRITE):
        raise InvalidRequestError(
            f"the option 'mode' says {said}, and the frame is saved with mode overwrite: say .mode(\"append\")"
        )
    return Mode.OVERWRITE.value if overwrite else said or Mode.APPEND.value


def one_of(options: Mapping[str, str], name: str, values: Sequence[str]) -> str | None:
    """The value of an option that has a few.

    Args:
        options (Mapping[str, str]): what was said.
        name (str): the option.
        values (Sequence[str]): what it may be.

    Returns:
        str | None: None where it is not there.

    Raises:
        InvalidRequestError: it is something else.
    """
    said = options.get(name)
    if said is None or said.lower() in values:
        return None if said is None else said.lower()
    raise InvalidRequestError(f"the option '{name}' is one of {', '.join(values)}, and '{said}' is none of them")


def whole_number(option: str, text: str, else_: str = "") -> int:
    """The value of an option that is a number.

    Args:
        option (str): its name.
        text (str): its value.
        else_ (str): what else it may be, for the message.

    Returns:
        int: the number.

    Raises:
        InvalidRequestError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequestError(f"the option '{option}' is a number {else_}".rstrip() + f", and '{text}' is not")
    return int(text)
