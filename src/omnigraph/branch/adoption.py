"""Taking over versions that another line of commits has made, without losing them to a sweep on the way.

Whoever does puts what names the commit first, an intent, and asks only then whether the commit is kept still. A sweep
that began earlier has spared its files, a later one sees the intent; and where the answer is no, nothing was published.
"""

from collections.abc import Callable

from omnigraph.branch.lineage import inherited
from omnigraph.branch.marks import live_branches
from omnigraph.errors import NotFoundError, OutcomeUnknownError, UnavailableError
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning import retention


def kept_still(context: GraphContext, *entries: Record) -> Callable[[], None]:
    """What a write that takes over the versions of these entries does once its intent is on the store.

    Args:
        entries: whose versions the write names; each in the log of a branch that exists.

    Returns:
        For `Operation.confirm`: raises `ReclaimedError` where a prune has passed one of them, `NotFoundError` where
        its branch is gone.
    """

    def confirm() -> None:
        for entry in entries:
            retention.check_kept(context, entry)

    return confirm


def check_named(context: GraphContext, entry: Record, named: str) -> None:
    """What a fork or tag does once it is on the store: from then on no sweep takes what it names, if none had before.

    Raises:
        ReclaimedError: a prune had passed the entry; what was put must be taken back.
        NotFoundError: its branch is gone; likewise.
        OutcomeUnknownError: the store cannot be asked.
    """
    try:
        try:
            retention.check_kept(context, entry)
        except NotFoundError:
            if not _is_inherited(context, entry):
                raise
    except UnavailableError as fault:
        raise OutcomeUnknownError(
            f"{named} was made, but the store could not be asked whether what it names is still kept; "
            "look at it before relying on it"
        ) from fault


def _is_inherited(context: GraphContext, entry: Record) -> bool:
    """Whether a living branch has inherited an entry from a branch that was deleted; then no sweep takes it."""
    heads = [head for name in live_branches(context) if (head := context.log.head(name)) is not None and head.is_live]
    return any(
        line.branch == entry.branch and line.lowest <= entry.number <= line.last
        for line in inherited(context, heads).values()
    )
