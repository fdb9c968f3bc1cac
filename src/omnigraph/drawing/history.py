"""A graph's history, drawn: commits from left to right, a line for every branch, merges across."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice

from omnigraph import limits
from omnigraph.api.commit import Commit
from omnigraph.api.graph import Graph
from omnigraph.drawing.drawing import Drawing

_STEP, _LANE = 96, 90


def drawn(graph: Graph, *, limit: int, branches: Iterable[str] | None = None) -> Drawing:
    """The commits of branches.

    Args:
        graph (Graph): whose.
        limit (int): commits of a branch to draw at most, the newest.
        branches (Iterable[str] | None): which; all by default.

    Returns:
        Drawing: of them.
    """
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
        names = [f"[{each}]" for each in heads.get(commit.id, ())] + [f"‹{each}›" for each in tags.get(commit.id, ())]
        label = " ".join([*names, commit.message or _what(commit)])
        details = {
            "commit": commit.id,
            "number": commit.number,
            "at": _time(commit.created_at_us),
            "by": commit.actor,
            "message": commit.message,
            **{key: f"+{each.inserted} ~{each.updated} -{each.deleted}" for key, each in commit.changes.items()},
        }
        at = (step * _STEP, lane * _LANE)
        drawing.node(commit.id, label, commit.branch, details=details, at=at, entity=commit.id)
    for commit in found.values():
        for parent, how in ((commit.parent, "parent"), (commit.merged_parent, "merge")):
            if parent is not None and parent in drawing:
                drawing.link(drawing.place(parent), drawing.place(commit.id), how, dashed=how == "merge")
    return drawing


def _what(commit: Commit) -> str:
    """What a commit did, in a word and three numbers."""
    inserted = sum(each.inserted for each in commit.changes.values())
    updated = sum(each.updated for each in commit.changes.values())
    deleted = sum(each.deleted for each in commit.changes.values())
    numbers = [f"{sign}{count:,}" for sign, count in (("+", inserted), ("~", updated), ("−", deleted)) if count]
    return " ".join([commit.kind, *numbers])


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
