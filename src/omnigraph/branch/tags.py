"""Tags: names that do not move. Each has a short log of its own, so that a name can be taken again after deletion.

Creation and deletion take turns in that log, so the number of its newest entry tells whether the tag is there: a
listing answers without reading any.
"""

import json

from omnigraph import limits
from omnigraph.branch import adoption
from omnigraph.branch.told import Tag
from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    InvalidRequestError,
    NotFoundError,
)
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.transaction.conditional_put import put_or_read
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.validation import require_optional_text

_TAG_FORMAT = 1


def create(parts: GraphContext, name: str, entry: Record, *, actor: str | None = None) -> Tag:
    """Name the state an entry shows.

    Raises:
        AlreadyExistsError: the name is taken.
        ReclaimedError: a prune has passed the entry; the name stays free.
        NotFoundError: the branch of the entry is gone; likewise.
    """
    parts.refuse_read_only()
    who = require_optional_text(actor, "the actor")
    tag = Tag(tag_name(name), entry.head_commit, entry.branch, entry.number, who, parts.clock.now_us())
    parts.log.store_clock.check(tag.created_at_us)
    number, current = _newest(parts, tag.name)
    if current is not None:
        raise AlreadyExistsError(f"tag '{tag.name}' already exists (commit {current.commit})", code="tag_exists")
    if not _put(parts, tag.name, number + 1, _document(tag)):
        raise AlreadyExistsError(f"tag '{tag.name}' was created meanwhile", code="tag_exists")
    try:
        # From here on no sweep takes what it names; a prune may have passed it before.
        adoption.check_named(parts, entry, f"tag '{tag.name}'")
    except NotFoundError as gone:
        delete(parts, tag.name)
        gone.add_note(f"tag '{tag.name}' was not made")
        raise
    return tag


def delete(parts: GraphContext, name: str) -> None:
    """Take a name back; the commit stays.

    Raises:
        NotFoundError: there is no such tag.
    """
    parts.refuse_read_only()
    tag = tag_name(name)
    for _ in range(limits.PUBLISH_ATTEMPTS_MAX):
        number, current = _newest(parts, tag)
        if current is None:
            raise NotFoundError(f"tag '{tag}' not found", code="tag_not_found")
        if _put(parts, tag, number + 1, {"format": _TAG_FORMAT, "deleted": True}):
            return
    raise ConflictError(f"tag '{tag}' is too busy: others keep writing it; try again", code="too_busy")


def end(parts: GraphContext, name: str, *, after: int) -> None:
    """Take a name back without reading what it names, for repair; `after` is the number of its newest entry."""
    _put(parts, name, after + 1, {"format": _TAG_FORMAT, "deleted": True})


def read(parts: GraphContext, name: str) -> Tag:
    """What a tag names.

    Raises:
        NotFoundError: there is no such tag.
    """
    tag = tag_name(name)
    _, current = _newest(parts, tag)
    if current is None:
        raise NotFoundError(f"tag '{tag}' not found", code="tag_not_found")
    return current


def names_commit(parts: GraphContext, name: str, commit: str) -> bool:
    """Whether there is such a tag, and it names this commit."""
    _, current = _newest(parts, tag_name(name))
    return current is not None and current.commit == commit


def names(parts: GraphContext) -> list[str]:
    """The tags there are, in order; one request for every thousand."""
    newest: dict[str, int] = {}
    for listed in parts.store.list(paths.TAGS):
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


def _newest(parts: GraphContext, tag: str) -> tuple[int, Tag | None]:
    for listed in parts.store.list(paths.tag_folder(tag)):
        number = paths.entry_number(listed.path)
        if number is not None:
            return number, _read(parts, tag, listed.path)
    return 0, None


def _read(parts: GraphContext, tag: str, path: str) -> Tag | None:
    where = paths.absolute(parts.store, path)
    try:
        found = json.loads(parts.store.get(path))
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


def _put(parts: GraphContext, tag: str, number: int, document: dict[str, object]) -> bool:
    """Put an entry of a tag; False when another has that place."""
    body = json.dumps(document | {"id": parts.ids.new()}).encode()
    return put_or_read(parts.store, paths.tag_entry(tag, number), body, clock=parts.clock) == body
