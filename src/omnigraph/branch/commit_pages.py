"""The changes of one commit for clients: pages, with tokens bound to the graph, the commit and the filter."""

from omnigraph.branch.commit_changes import CommitChanges, Place
from omnigraph.branch.cursor import Carried, decode, encode, rejected, sound_payload
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.feed import PageBounds
from omnigraph.branch.points import entry_before
from omnigraph.branch.told import CommitChangesPage
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext

_WHAT = Carried.COMMIT_PAGE


def changes_of(parts: GraphContext, entry: Record, wanted: ChangeFilter | None = None) -> CommitChanges:
    """The changes of a commit against the state before it."""
    return CommitChanges(parts, entry, entry_before(parts, entry), wanted or ChangeFilter())


def commit_page(
    parts: GraphContext, entry: Record, wanted: ChangeFilter, *, page_token: str | None, bounds: PageBounds
) -> CommitChangesPage:
    """A page of a commit's changes.

    Raises:
        InvalidRequestError: the token is none of this commit and filter.
        ChangeRefusedError: there is no first parent, or the schema changed in a way no change of rows can tell.
        ChangeGapError: the commit, or the state before it, was pruned.
        LimitError: the page would be larger than pages may be.
    """
    room = bounds.room()
    bound = {"graph": parts.graph, "commit": entry.commit, "filter": wanted.digest}
    start = Place()
    if page_token is not None:
        with sound_payload(_WHAT):
            carried = decode(_WHAT, page_token)
            for name, told in (("graph", "a different graph"), ("commit", "a different commit")):
                if carried[name] != bound[name]:
                    raise rejected(f"{_WHAT} belongs to {told}")
            if carried["filter"] != bound["filter"]:
                raise rejected(f"{_WHAT} belongs to different filters")
            start = Place(str(carried["inside"][0]), int(carried["inside"][1]))
    changes, rest = changes_of(parts, entry, wanted).page(start, room)
    token = None if rest is None else encode(_WHAT, bound | {"inside": [rest.type_id, rest.offset]})
    return CommitChangesPage(entry, changes, token)
