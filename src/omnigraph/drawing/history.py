"""Draw the history of a graph: commits from left to right, one lane for each branch, merges between lanes."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice

from omnigraph import limits
from omnigraph.api.commit import Commit
from omnigraph.api.graph import Graph
from omnigraph.drawing.drawing import Drawing

_STEP, _LANE = 96, 90


def drawn(graph: Graph, *, limit: int, branches: Iterable[str] | None = None) -> Drawing:
    """Draw the newest commits of each branch, at most `limit`; by default of all branches."""
    found: dict[str, Commit] = {}
    heads: dict[str, list[str]] = {}
    chosen = list(graph.branches if branches is None else branches)
    for branch in chosen:
        commits = graph.commits.list(branch, limit=limit)
        found |= {commit.id: commit for commit in commits}
        if commits:
            heads.setdefault(commits[0].id, []).append(branch)
    tags: dict[str, list[str]] = {}
    for tag in islice(graph.tags, limits.DRAWN_TAGS_MAX):
        tags.setdefault(graph.tags.read(tag).commit, []).append(tag)
    drawing = Drawing("History", f"{len(found):,} commits on {len(chosen)} branches", "timeline")
    lanes: dict[str, int] = {}
    for step, commit in enumerate(sorted(found.values(), key=lambda commit: (commit.created_at_us, commit.id))):
        lane = lanes.setdefault(commit.branch, len(lanes))
        names = [f"[{branch}]" for branch in heads.get(commit.id, ())]
        names += [f"‹{tag}›" for tag in tags.get(commit.id, ())]
        label = " ".join([*names, commit.message or _summarize(commit)])
        details = {
            "commit": commit.id,
            "number": commit.number,
            "at": _format_time(commit.created_at_us),
            "by": commit.actor,
            "message": commit.message,
            **{
                key: f"+{counts.inserted} ~{counts.updated} -{counts.deleted}" for key, counts in commit.changes.items()
            },
        }
        at = (step * _STEP, lane * _LANE)
        drawing.node(commit.id, label, commit.branch, details=details, at=at, entity=commit.id)
    for commit in found.values():
        for parent, label in ((commit.parent, "parent"), (commit.merged_parent, "merge")):
            if parent is not None and parent in drawing:
                drawing.link(drawing.index(parent), drawing.index(commit.id), label, dashed=label == "merge")
    return drawing


def _summarize(commit: Commit) -> str:
    """Return the kind of a commit and its counts of changes."""
    inserted = sum(counts.inserted for counts in commit.changes.values())
    updated = sum(counts.updated for counts in commit.changes.values())
    deleted = sum(counts.deleted for counts in commit.changes.values())
    numbers = [f"{sign}{count:,}" for sign, count in (("+", inserted), ("~", updated), ("−", deleted)) if count]
    return " ".join([commit.kind, *numbers])


def _format_time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
