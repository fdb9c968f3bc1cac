"""Lists in pages."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from omnigraph.branch.cursor import Carried, decode, encode
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.validation import require_optional_whole_number

T = TypeVar("T")


class Page(list[T]):
    """A list that knows whether there is more.

    Attributes:
        next_page_token: for the call that gives the next page; None at the end.
    """

    def __init__(self, items: Iterable[T], next_page_token: str | None = None) -> None:
        super().__init__(items)
        self.next_page_token = next_page_token


def page_of_names(names: Sequence[str], *, limit: int | None, page_token: str | None) -> Page[str]:
    """Cut the next page out of all names, in order.

    Raises:
        InvalidRequestError: the limit is below one, or the token is invalid.
    """
    check_limit(limit)
    if page_token is not None:
        after = str(decode(Carried.NAMES_PAGE, page_token, refuse=refused_token).get("after", ""))
        names = [name for name in names if name > after]
    shown = names if limit is None else names[:limit]
    more = len(shown) < len(names)
    return Page(shown, encode(Carried.NAMES_PAGE, {"after": shown[-1]}) if more else None)


def check_limit(limit: int | None) -> None:
    """Require a page limit of at least one.

    Raises:
        InvalidRequestError: the limit is below one, or not a whole number.
    """
    require_optional_whole_number(limit, "a page limit")
    if limit is not None and limit < 1:
        raise InvalidRequestError("page limit must be greater than zero")


def refused_token(reason: str) -> InvalidRequestError:
    """Make the error for an invalid page token."""
    return InvalidRequestError(f"page token rejected: {reason}", code="page_token_rejected", reason=reason)
