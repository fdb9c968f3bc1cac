"""Commits that a prune has passed and a tag still holds."""

from omnigraph.branch import tags
from omnigraph.errors import NotFoundError
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext


def tagged_entries(parts: GraphContext) -> list[Record]:
    """The entries that tags name, in order of branch and number; one request for every tag, and one for its entry.

    Returns:
        list[Record]: those that are there.

    Raises:
        FormatError: a tag, or what it names, cannot be read.
    """
    found: dict[tuple[str, int], Record] = {}
    for name in tags.names(parts):
        try:
            tag = tags.read(parts, name)
        except NotFoundError:
            continue  # deleted meanwhile
        entry = parts.log.read(tag.branch, tag.number)
        if entry is not None and entry.head_commit == tag.commit:
            found[entry.branch, entry.number] = entry
    return [found[key] for key in sorted(found)]


def held_at(parts: GraphContext, branch: str, instant_us: int) -> Record | None:
    """What a branch showed at an instant, if a tag holds it.

    Args:
        branch (str): in whose log to look.
        instant_us (int): when, microseconds since 1970.

    Returns:
        Record | None: the entry; None where it is not held, or where nobody can tell any more that it was the newest.
    """
    older = [each for each in tagged_entries(parts) if each.branch == branch and each.created_at_us <= instant_us]
    if not older:
        return None
    after = parts.log.read(branch, older[-1].number + 1)
    return older[-1] if after is not None and after.created_at_us > instant_us else None
