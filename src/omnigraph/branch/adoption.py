"""Taking over versions that another line of commits has made, without losing them to a sweep on the way.

Whoever does puts what names the commit first, an intent, and asks only then whether the commit is kept still. A sweep
that began earlier has spared its files, a later one sees the intent; and where the answer is no, nothing was published.
"""

from collections.abc import Callable

from omnigraph.model.commit import Record
from omnigraph.transaction import retention
from omnigraph.transaction.parts import Parts


def kept_still(parts: Parts, *entries: Record) -> Callable[[], None]:
    """What a write that takes over the versions of these entries does once its intent is on the store.

    Args:
        parts: of the graph.
        entries: whose versions the write names; each in the log of a branch that exists.

    Returns:
        For `Operation.confirm`: raises `ReclaimedError` where a prune has passed one of them, `NotFoundError` where
        its branch is gone.
    """

    def confirm() -> None:
        for entry in entries:
            retention.check_kept(parts, entry)

    return confirm
