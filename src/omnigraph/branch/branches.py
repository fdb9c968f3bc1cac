"""Branches: each is a log. Creating one is one put, whatever the number of types; deleting one likewise.

Creation and deletion are entries of the branch's own log, so numbers go on when a name is used again, and a writer of
an earlier life of the name can never be mistaken for one of the new.
"""

from concurrent.futures import ThreadPoolExecutor

from omnigraph import ids, limits
from omnigraph.errors import AlreadyExistsError, ConflictError, InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.transaction.log import Done, Refused
from omnigraph.transaction.parts import Parts

_LIST_THREADS = 8


def create(parts: Parts, name: str, *, source: str = MAIN, actor: str | None = None) -> Record:
    """Make a branch from the head of another.

    Returns:
        Its first entry. It is no commit: the new branch's head commit is its source's.

    Raises:
        AlreadyExistsError: there is such a branch.
        NotFoundError: there is no source branch.
        InvalidRequestError: the name cannot be one.
    """
    parts.refuse_read_only()
    branch = paths.branch_name(name)
    if branch == MAIN:
        raise InvalidRequestError("cannot create branch 'main'")
    origin = parts.log.live_head(paths.branch_name(source))
    before: Record | None = None  # a name never used before, as a rule: then nothing has to be read
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        entry = _fork(parts, branch, origin, before, actor)
        match parts.log.put(entry):
            case Done():
                reached(Failpoint.BRANCH_ENTRY_PUT)
                return entry
            case Refused():
                head = parts.log.head(branch)
                if head is None or head.is_live:
                    raise AlreadyExistsError(f"branch '{branch}' already exists", code="branch_exists", branch=branch)
                before = head
    raise _too_busy(branch)


def delete(parts: Parts, name: str, *, actor: str | None = None) -> Record:
    """Delete a branch. Its log stays, ended by an entry that says so; branches made from it live on.

    Raises:
        NotFoundError: there is no such branch.
        InvalidRequestError: it is `main`.
    """
    parts.refuse_read_only()
    branch = paths.branch_name(name)
    if branch == MAIN:
        raise InvalidRequestError("cannot delete branch 'main'")
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        head = parts.log.live_head(branch)
        entry = Record(
            commit=ids.after(head.commit, parts.ids.new()),
            branch=branch,
            number=head.number + 1,
            kind=CommitKind.DELETE,
            parent=head.head_commit,
            schema=head.schema,
            tables={},
            created_at_us=max(parts.clock.now_us(), head.created_at_us),
            actor=actor,
        )
        if isinstance(parts.log.put(entry), Done):
            reached(Failpoint.BRANCH_ENTRY_PUT)
            return entry
    raise _too_busy(branch)


def names(parts: Parts) -> list[str]:
    """The branches there are, in order."""
    known = parts.log.branch_names()
    with ThreadPoolExecutor(_LIST_THREADS) as pool:
        heads = list(pool.map(parts.log.head, known))
    return [name for name, head in zip(known, heads, strict=True) if head is not None and head.is_live]


def _fork(parts: Parts, branch: str, origin: Record, before: Record | None, actor: str | None) -> Record:
    """The entry that makes a branch; ids and times rise both from its source and from an earlier life of its name."""
    earlier = [origin] if before is None else [origin, before]
    return Record(
        commit=ids.after(max(entry.commit for entry in earlier), parts.ids.new()),
        branch=branch,
        number=1 if before is None else before.number + 1,
        kind=CommitKind.FORK,
        parent=origin.head_commit,
        schema=origin.schema,
        tables=origin.tables,
        created_at_us=max(parts.clock.now_us(), *(entry.created_at_us for entry in earlier)),
        actor=actor,
        fork_of=origin.branch,
        fork_number=origin.number,
    )


def _too_busy(branch: str) -> ConflictError:
    return ConflictError(f"branch '{branch}' is too busy: others keep writing its log; try again", code="too_busy")
