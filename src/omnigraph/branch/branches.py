"""Branches: each is a log. Creating one is one put, whatever the number of types; deleting one likewise.

Creation and deletion are entries of the branch's own log, so numbers go on when a name is used again, and a writer of
an earlier life of the name can never be mistaken for one of the new. Whoever ends a branch, or uses its name again,
says so beside the log first (`marks.py`): a listing then answers without reading logs.
"""

from omnigraph import ids, limits
from omnigraph.branch import adoption, marks, tags
from omnigraph.branch.find_entry import act_at
from omnigraph.branch.marks import Mark
from omnigraph.branch.point import HEAD_OF_MAIN, Point
from omnigraph.errors import AlreadyExistsError, ConflictError, InvalidRequestError, NotFoundError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.model.retention import NOTHING_PRUNED
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Baseless, Done, Refused
from omnigraph.transaction.preconditions import check_head
from omnigraph.transaction.pruning.retention import check_made
from omnigraph.transaction.validation import require_optional_text


def create(
    context: GraphContext,
    name: str,
    *,
    source: str | None = None,
    point: Point = HEAD_OF_MAIN,
    actor: str | None = None,
) -> Record:
    """Make a branch from the head of another, or from any other point of the history.

    Args:
        name: of the new branch.
        source: the branch from whose head it starts; short for `Point(branch=source)`.
        point: where it starts.
        actor: who.

    Returns:
        Its first entry. It is no commit: the new branch's head commit is the one it starts at.

    Raises:
        AlreadyExistsError: there is such a branch.
        NotFoundError: there is no such point.
        InvalidRequestError: the name cannot be one.
    """
    context.refuse_read_only()
    branch = paths.branch_name(name)
    if branch == MAIN:
        raise InvalidRequestError("cannot create branch 'main'")
    require_optional_text(actor, "the actor")
    point = point if source is None else Point(branch=source)
    return act_at(context, point, lambda origin: _create(context, branch, origin, point, actor))


def _create(context: GraphContext, branch: str, origin: Record, point: Point, actor: str | None) -> Record:
    check_made(context, origin)
    before: Record | None = None  # a name never used before, as a rule: then nothing has to be read
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        entry = _fork(context, branch, origin, before, actor)
        if before is not None:
            marks.announce(context, branch, entry.number)
        match context.log.put(entry, after=before):
            case Done(entry):
                reached(Failpoint.BRANCH_ENTRY_PUT)
                if before is not None:
                    marks.settle(context, branch, entry.number, Mark.LIVE, announced=True)
                _keep_or_take_back(context, entry, origin, point)
                return entry
            case Refused(winner):
                if before is not None:
                    marks.give_way(context, branch, entry.number, winner)
                before = _ended(context, branch, actor)
            case Baseless():
                before = context.log.head(branch)
    raise _too_busy(branch)


def delete(context: GraphContext, name: str, *, actor: str | None = None, if_commit: str | None = None) -> Record:
    """Delete a branch. Its log stays, ended by an entry that says so; branches made from it live on.

    Raises:
        NotFoundError: there is no such branch.
        InvalidRequestError: it is `main`.
        PreconditionError: the head is another commit.
    """
    context.refuse_read_only()
    branch = paths.branch_name(name)
    if branch == MAIN:
        raise InvalidRequestError("cannot delete branch 'main'")
    require_optional_text(actor, "the actor")
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        head = context.log.live_head(branch, tentative=if_commit is None)
        check_head(context, head, if_commit)
        entry = Record(
            commit=ids.after(head.commit, context.ids.new()),
            branch=branch,
            number=head.number + 1,
            kind=CommitKind.DELETE,
            parent=head.head_commit,
            schema=head.schema,
            tables={},
            created_at_us=max(context.clock.now_us(), head.created_at_us),
            actor=actor,
            born=head.life,
            pruned=head.pruned,
        )
        marks.announce(context, branch, entry.number)
        match context.log.put(entry, after=head):
            case Done(entry):
                reached(Failpoint.BRANCH_ENTRY_PUT)
                marks.settle(context, branch, entry.number, Mark.GONE, announced=True)
                return entry
            case Refused(winner):
                marks.give_way(context, branch, entry.number, winner)
            case Baseless():
                continue  # the next listing withdraws the announcement
    raise _too_busy(branch)


def exists(context: GraphContext, name: str) -> bool:
    """Whether there is such a branch.

    Raises:
        InvalidRequestError: the name cannot be one.
    """
    head = context.log.head(paths.branch_name(name))
    return head is not None and head.is_live


def names(context: GraphContext) -> list[str]:
    """The branches there are, in order: one listing, with a name for each and one more for a deleted one."""
    return marks.live_branches(context)


def heads(context: GraphContext) -> list[Record]:
    """The newest entries of the branches there are, in order; each log is looked at.

    What was deleted a moment ago is passed over; and so is what is listed though it is not there, because somebody took
    the mark away that said so: then it is put again.
    """
    found = []
    for name in names(context):
        head = context.log.head(name)
        if head is not None and head.is_live:
            found.append(head)
        elif head is not None and not context.read_only:
            marks.settle(context, name, head.number, Mark.GONE)
    return found


def _ended(context: GraphContext, branch: str, actor: str | None) -> Record:
    """The entry that ended the last life of a name that is to be used again; one that was never made is ended here.

    Raises:
        AlreadyExistsError: there is such a branch.
    """
    head = context.log.head(branch)
    if head is not None and not head.is_live:
        return head
    if head is not None:
        try:
            check_made(context, head)
        except NotFoundError:
            return delete(context, branch, actor=actor)
    raise AlreadyExistsError(f"branch '{branch}' already exists", code="branch_exists", branch=branch)


def _keep_or_take_back(context: GraphContext, entry: Record, origin: Record, point: Point) -> None:
    """See to it that what the new branch shows is kept: a prune may have passed its source before the fork was there.

    From the fork on no sweep takes it, so one look is enough; and where it is too late, the fork is taken back.
    """
    if point.tag is not None and tags.names_commit(context, point.tag, origin.head_commit):
        return  # the tag has held it all along
    try:
        adoption.check_named(context, origin, f"branch '{entry.branch}'")
    except NotFoundError as gone:
        delete(context, entry.branch, actor=entry.actor)
        gone.add_note(f"branch '{entry.branch}' was not made")
        raise


def _fork(context: GraphContext, branch: str, origin: Record, before: Record | None, actor: str | None) -> Record:
    """The entry that makes a branch; ids and times rise both from its source and from an earlier life of its name."""
    earlier = [origin] if before is None else [origin, before]
    return Record(
        commit=ids.after(max(entry.commit for entry in earlier), context.ids.new()),
        branch=branch,
        number=1 if before is None else before.number + 1,
        kind=CommitKind.FORK,
        parent=origin.head_commit,
        schema=origin.schema,
        tables=origin.tables,
        created_at_us=max(context.clock.now_us(), *(entry.created_at_us for entry in earlier)),
        actor=actor,
        fork_of=origin.branch,
        fork_number=origin.number,
        pruned=NOTHING_PRUNED if before is None else before.pruned,
    )


def _too_busy(branch: str) -> ConflictError:
    return ConflictError(f"branch '{branch}' is too busy: others keep writing its log; try again", code="too_busy")
