"""Points in a graph's history: the log entry a branch, a number or a commit id stands for."""

from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


def entry_at(parts: Parts, *, branch: str | None, commit: str | None, number: int | None) -> Record:
    """The entry that shows a state of the graph.

    Args:
        parts: of the graph.
        branch: its head, or the entry of this number in its log; `main` by default.
        commit: the commit of this id, wherever it is.
        number: the place in the branch's log.

    Returns:
        The entry.

    Raises:
        NotFoundError: there is no such branch, number or commit.
        InvalidRequestError: a commit is named beside a branch or number.
    """
    if commit is not None:
        if branch is not None or number is not None:
            raise InvalidRequestError("a commit is found by its id alone; name no branch and no number beside it")
        return _of_commit(parts, commit)
    name = paths.branch_name(branch if branch is not None else MAIN)
    head = parts.log.live_head(name)
    if number is None or number == head.number:
        return head
    found = parts.log.read(name, number) if 1 <= number < head.number else None
    if found is None or not found.is_live:
        raise NotFoundError(
            f"branch '{name}' has no commit number {number}; its newest is {head.number}", code="commit_not_found"
        )
    return found


def _of_commit(parts: Parts, commit: str) -> Record:
    others = (name for name in parts.log.branch_names() if name != MAIN)
    for branch in (MAIN, *others):
        found = _in_log(parts, branch, commit)
        if found is not None:
            return found
    raise NotFoundError(f"commit '{commit}' not found", code="commit_not_found", commit=commit)


def _in_log(parts: Parts, branch: str, commit: str) -> Record | None:
    """A commit in one log, by halving: ids rise along a log."""
    head = parts.log.head(branch)
    if head is None or commit > head.commit:
        return None
    below, found = 0, head
    while found.commit != commit:
        if found.number - below <= 1:
            return None
        middle = (below + found.number) // 2
        entry = parts.log.read(branch, middle)
        # What is no longer there was cut away, and so was everything before it.
        if entry is None or entry.commit < commit:
            below = middle
        else:
            found = entry
    return found if found.is_commit else None
