"""Tags: names that do not move. Each has a short log of its own, so that a name can be taken again after deletion.

Creation and deletion take turns in that log, so the number of its newest entry tells whether the tag is there: a
listing answers without reading any.
"""

import json

from omnigraph import limits
from omnigraph.branch import adoption
from omnigraph.branch.history_values import Tag
from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    InvalidRequestError,
    NotFoundError,
)
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.validation import require_optional_text

_TAG_FORMAT = 1


def create(context: GraphContext, name: str, entry: Record, *, actor: str | None = None) -> Tag:
    """Name the state an entry shows.

    Raises:
        AlreadyExistsError: the name is taken.
        ReclaimedError: a prune has passed the entry; the name stays free.
        NotFoundError: the branch of the entry is gone; likewise.
    """
    context.refuse_read_only()
    who = require_optional_text(actor, "the actor")
    tag = Tag(tag_name(name), entry.head_commit, entry.branch, entry.number, who, context.clock.now_us())
    context.log.store_clock.check(tag.created_at_us)
    number, current = _newest(context, tag.name)
    if current is not None:
        raise AlreadyExistsError(f"tag '{tag.name}' already exists (commit {current.commit})", code="tag_exists")
    if not _put(context, tag.name, number + 1, _document(tag)):
        raise AlreadyExistsError(f"tag '{tag.name}' was created meanwhile", code="tag_exists")
    try:
        # From here on no sweep takes what it names; a prune may have passed it before.
        adoption.check_named(context, entry, f"tag '{tag.name}'")
    except NotFoundError as gone:
        delete(context, tag.name)
        gone.add_note(f"tag '{tag.name}' was not made")
        raise
    return tag


def delete(context: GraphContext, name: str) -> None:
    """Take a name back; the commit stays.

    Raises:
        NotFoundError: there is no such tag.
    """
    context.refuse_read_only()
    tag = tag_name(name)
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        number, current = _newest(context, tag)
        if current is None:
            raise NotFoundError(f"tag '{tag}' not found", code="tag_not_found")
        if _put(context, tag, number + 1, {"format": _TAG_FORMAT, "deleted": True}):
            return
    raise ConflictError(f"tag '{tag}' is too busy: others keep writing it; try again", code="too_busy")


def end(context: GraphContext, name: str, *, after: int) -> None:
    """Take a name back without reading what it names, for repair; `after` is the number of its newest entry."""
    _put(context, name, after + 1, {"format": _TAG_FORMAT, "deleted": True})


def read(context: GraphContext, name: str) -> Tag:
    """What a tag names.

    Raises:
        NotFoundError: there is no such tag.
    """
    tag = tag_name(name)
    _, current = _newest(context, tag)
    if current is None:
        raise NotFoundError(f"tag '{tag}' not found", code="tag_not_found")
    return current


def names_commit(context: GraphContext, name: str, commit: str) -> bool:
    """Whether there is such a tag, and it names this commit."""
    _, current = _newest(context, tag_name(name))
    return current is not None and current.commit == commit


def names(context: GraphContext) -> list[str]:
    """The tags there are, in order; one request for every thousand."""
    newest: dict[str, int] = {}
    for listed in context.store.list(paths.TAGS):
        folder, _, _ = listed.path.removeprefix(paths.TAGS).partition("/")
        number = paths.entry_number(listed.path)
        # Higher numbers come first. A folder whose name is not how a tag is spelled there was left by somebody else.
        if number is not None and folder not in newest and paths.segment(paths.unsegment(folder)) == folder:
            newest[folder] = number
    return sorted(paths.unsegment(folder) for folder, number in newest.items() if number % 2)


def tag_name(name: str) -> str:
    """A tag's name as it is stored; the rules are those of branch names."""
    try:
        return paths.branch_name(name)
    except InvalidRequestError as refused:
        raise InvalidRequestError(refused.message.replace("branch", "tag", 1)) from None


def _newest(context: GraphContext, tag: str) -> tuple[int, Tag | None]:
    for listed in context.store.list(paths.tag_folder(tag)):
        number = paths.entry_number(listed.path)
        if number is not None:
            return number, _read(context, tag, listed.path)
    return 0, None


def _read(context: GraphContext, tag: str, path: str) -> Tag | None:
    where = paths.absolute(context.store, path)
    try:
        found = json.loads(context.store.get(path))
        if found["format"] > _TAG_FORMAT:
            raise FormatError(f"the tag {where} has format {found['format']}: upgrade omnigraph first")
        if found.get("deleted"):
            return None
        return Tag(
            tag, found["commit"], found["branch"], int(found["number"]), found.get("actor"), int(found["created_at"])
        )
    except ObjectNotFound:
        return None
    except (ValueError, KeyError, TypeError) as fault:
        raise FormatError(f"the tag {where} is damaged: {fault}") from fault


def _document(tag: Tag) -> dict[str, object]:
    return {
        "format": _TAG_FORMAT,
        "commit": tag.commit,
        "branch": tag.branch,
        "number": tag.number,
        "actor": tag.actor,
        "created_at": tag.created_at_us,
    }


def _put(context: GraphContext, tag: str, number: int, document: dict[str, object]) -> bool:
    """Put an entry of a tag; False when another has that place."""
    body = json.dumps(document | {"id": context.ids.new()}).encode()
    return put_or_read(context.store, paths.tag_entry(tag, number), body, clock=context.clock) == body


def tagged_entries(context: GraphContext) -> list[Record]:
    """The entries that tags name, in order of branch and number; one request for every tag, and one for its entry.

    Raises:
        FormatError: a tag, or what it names, cannot be read.
    """
    found: dict[tuple[str, int], Record] = {}
    for name in names(context):
        try:
            tag = read(context, name)
        except NotFoundError:
            continue  # deleted meanwhile
        entry = context.log.read(tag.branch, tag.number)
        if entry is not None and entry.head_commit == tag.commit:
            found[entry.branch, entry.number] = entry
    return [found[key] for key in sorted(found)]


def held_at(context: GraphContext, branch: str, instant_us: int) -> Record | None:
    """What a branch showed at an instant, if a tag holds it.

    Returns:
        Record | None: the entry; None where it is not held, or where nobody can tell any more that it was the newest.
    """
    older = [entry for entry in tagged_entries(context) if entry.branch == branch and entry.created_at_us <= instant_us]
    if not older:
        return None
    after = context.log.read(branch, older[-1].number + 1)
    return older[-1] if after is not None and after.created_at_us > instant_us else None
