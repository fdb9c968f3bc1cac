"""Suggestions ("did you mean …") for unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from omnigraph import limits

_LISTED_MAX = 12


def suggest(written: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, else list all if they are few, else return an empty text.

    Args:
        written: the name that is not known.
        known: the names that are.

    Returns:
        A sentence for the report, or nothing.
    """
    names = sorted(islice(known, limits.HINT_NAMES_MAX))
    # Far too long to be a slip of the fingers, and slow to compare.
    if len(written) > 100:
        return ""
    folded = {name.lower(): name for name in names}
    close = [folded[name] for name in get_close_matches(written.lower(), folded, n=1)]
    if close:
        return f"did you mean `{close[0]}`?"
    if 0 < len(names) <= _LISTED_MAX:
        return f"there is {_join_names(names)}"
    return ""


def explain_unknown(what: str, written: str, known: Iterable[str]) -> str:
    """Return a message about an unknown name, with a suggestion.

    Args:
        what: start of the message, like `there is no type`.
        written: the unknown name.
        known: candidates for the suggestion.
    """
    hint = suggest(written, known)
    return f"{what} '{written}'; {hint}" if hint else f"{what} '{written}'"


def _join_names(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
