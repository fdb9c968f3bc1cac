"""Verifying tags: that each can be read, and that what it names is there; and putting aside those that cannot."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.branch import tags
from omnigraph.branch.history_values import Tag
from omnigraph.errors import FormatError, NotFoundError, UnavailableError
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreError
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss


@dataclass(frozen=True, slots=True)
class CheckedTags:
    """What the tags of a graph hold, and what is wrong with them.

    Attributes:
        held: by branch, the numbers of the entries that tags name.
        findings: tags that cannot be read, or name what is not there.
    """

    held: dict[str, set[int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def check_tags(context: GraphContext, *, branch: str | None = None) -> CheckedTags:
    """Read every tag, and the entry it names.

    Returns:
        CheckedTags: what they hold; the tables of it are for the verification of the log to look at.

    Raises:
        UnavailableError: the tags cannot be listed.
    """
    checked = CheckedTags()
    for name in tags.names(context):
        try:
            tag = tags.read(context, name)
        except NotFoundError:
            continue  # deleted meanwhile
        except (FormatError, UnavailableError) as fault:
            certain = not isinstance(fault, UnavailableError)
            problem = f"tag '{name}' cannot be read: {fault.message}"
            checked.findings.append(
                Finding(FindingKind.TAG, _path(context, name), problem, Loss.HISTORY, certain=certain)
            )
            continue
        if branch is None or tag.branch == branch:
            checked.findings.extend(_missing(context, tag))
            checked.held.setdefault(tag.branch, set()).add(tag.number)
    return checked


def put_damaged_tags_aside(context: GraphContext, findings: list[Finding]) -> list[str]:
    """Free the names of tags that cannot be read; what is there is copied aside."""
    done = []
    aside = f"{paths.QUARANTINE}{context.ids.new()}/"
    for finding in findings:
        if not finding.certain or finding.affected:
            continue  # it can be read, and says what was lost
        name = paths.unsegment(finding.path.removeprefix(paths.TAGS).partition("/")[0])
        try:
            context.store.copy(finding.path, f"{aside}{finding.path}")
            tags.end(context, name, after=paths.entry_number(finding.path) or 0)
        except StoreError as fault:
            done.append(f"tag '{name}' could not be put aside: {fault.message}")
        else:
            done.append(f"tag '{name}' is no more; what was there is {aside}{finding.path}")
    return done


def _missing(context: GraphContext, tag: Tag) -> Iterator[Finding]:
    """Complaints about what a tag names, where the log itself has none: an entry that should be held and is gone."""
    try:
        entry = context.log.read(tag.branch, tag.number)
    except (FormatError, UnavailableError):
        return  # the verification of the log tells it
    if entry is None or entry.head_commit != tag.commit:
        what = "is not there" if entry is None else f"is not the one it names, but shows commit {entry.head_commit}"
        yield Finding(
            FindingKind.TAG,
            _path(context, tag.name),
            f"tag '{tag.name}' names commit {tag.commit}: entry {tag.number} of branch '{tag.branch}' {what}",
            # The entry that is there can be read like any other; what is lost is what the tag meant.
            Loss.CONTENT if entry is None else Loss.HISTORY,
            (Affected(tag.branch, tag.number, tag.commit),),
        )


def _path(context: GraphContext, name: str) -> str:
    """The newest entry of a tag."""
    return next(
        (file.path for file in context.store.list(paths.tag_folder(name)) if paths.entry_number(file.path) is not None),
        paths.tag_folder(name),
    )
