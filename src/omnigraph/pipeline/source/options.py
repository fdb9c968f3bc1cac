"""Options of the data source; unknown ones are refused."""

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
        options: as the caller gave them, in any case.
        reading: whether they are for reading; None where that is not known yet.

    Raises:
        InvalidRequestError: there is no such option, or it is for the other direction (`unknown_option`).
    """
    known = {known_name.lower(): known_name for known_name in (*_READING, *_WRITING)}
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
        options: what was said.
        overwrite: whether Spark's own mode of saving is `overwrite`.

    Returns:
        str: append, merge or overwrite.

    Raises:
        InvalidRequestError: there is no such mode, or the two contradict each other.
    """
    # A patch names what it sets row by row, and a frame has every column in every row.
    value = one_of(options, "mode", tuple(mode for mode in Mode if mode is not Mode.PATCH))
    if overwrite and value not in (None, Mode.OVERWRITE):
        raise InvalidRequestError(
            f"the option 'mode' says {value}, and the frame is saved with mode overwrite: say .mode(\"append\")"
        )
    return Mode.OVERWRITE.value if overwrite else value or Mode.APPEND.value


def one_of(options: Mapping[str, str], name: str, values: Sequence[str]) -> str | None:
    """The value of an option that has a few.

    Args:
        options: what was said.
        name: the option.
        values: what it may be.

    Returns:
        str | None: None where it is not there.

    Raises:
        InvalidRequestError: it is something else.
    """
    value = options.get(name)
    if value is None or value.lower() in values:
        return None if value is None else value.lower()
    raise InvalidRequestError(f"the option '{name}' is one of {', '.join(values)}, and '{value}' is none of them")


def whole_number(option: str, text: str, else_: str = "") -> int:
    """The value of an option that is a number.

    Args:
        option: its name.
        text: its value.
        else_: what else it may be, for the message.

    Returns:
        int: the number.

    Raises:
        InvalidRequestError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequestError(f"the option '{option}' is a number {else_}".rstrip() + f", and '{text}' is not")
    return int(text)
