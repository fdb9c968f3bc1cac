"""Branches, tags and the history of a graph, wherever it is."""

import io
from typing import Any

import pytest
from tests.support.either_library import ADD, BOOKS, PAGES

from omnigraph import errors
from omnigraph.model.conflict import MergeConflictKind, RevertConflictKind

# Either of two classes, which share their methods and no ancestor.
AnyGraph = Any


# --- branches and tags ------------------------------------------------------------------------------------------------


def test_branches_come_and_go(graph: AnyGraph, line: str) -> None:
    name = f"{line}/a ünusual%name?"
    start = graph.branches.create(name, source=line)

    assert start == graph.snapshot(branch=line).commit
    assert name in graph.branches
    assert name in list(graph.branches)
    with pytest.raises(errors.AlreadyExistsError):
        graph.branches.create(name, source=line)
    graph.branches.delete(name)
    assert name not in graph.branches


def test_names_come_in_pages(graph: AnyGraph, line: str) -> None:
    for each in "abc":
        graph.branches.create(f"{line}/{each}", source=line)
    first = graph.branches.list(limit=2)
    rest = graph.branches.list(page_token=first.next_page_token)

    assert [*first, *rest] == list(graph.branches)


def test_a_tag_names_a_commit(graph: AnyGraph, line: str) -> None:
    name = f"v/{line}"
    made = graph.tags.create(name, branch=line)

    assert graph.tags.read(name) == made
    assert made.commit == graph.snapshot(branch=line).commit
    assert name in list(graph.tags)
    graph.tags.delete(name)
    with pytest.raises(errors.NotFoundError) as missing:
        graph.tags.read(name)
    assert missing.value.code == "tag_not_found"


def test_a_merge_brings_in_what_a_branch_did(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r")

    planned = graph.merge(f"{line}/r", into=line, preview=True)
    done = graph.merge(f"{line}/r", into=line, delete_branch=True, message="in")
    assert (planned.is_preview, planned.commit, planned.outcome) == (True, None, "fast_forward")
    assert (done.outcome, done.branch_deleted, done.head) == ("fast_forward", True, done.commit)
    assert done.changes["node:Author"].inserted == 1
    assert graph.commits.show(done.commit).merged_parent == done.source_commit
    assert graph.count("Author", branch=line) == 3


def test_conflicts_of_a_merge_are_values_and_can_be_decided(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    graph.mutate(PAGES, {"n": 400}, branch=f"{line}/r")
    graph.mutate(PAGES, {"n": 500}, branch=line)

    with pytest.raises(errors.MergeConflictError) as refused:
        graph.merge(f"{line}/r", into=line)
    preview = graph.merge(f"{line}/r", into=line, preview=True)
    done = graph.merge(f"{line}/r", into=line, resolutions={"node:Book": {"0-1": "source"}})

    [conflict] = refused.value.conflicts
    assert refused.value.code == "merge_conflicts"
    assert (conflict.kind, conflict.type_key) == (MergeConflictKind.DIVERGENT_UPDATE, "node:Book")
    assert conflict.entity_id == "0-1"
    [planned] = preview.conflicts
    assert [side["pages"] for side in (planned.base, planned.source, planned.target)] == [341, 400, 500]
    assert (done.outcome, done.resolved) == ("merged", 1)
    assert graph.query(BOOKS, branch=line).to_pylist()[0]["b.pages"] == 400


def test_one_property_of_an_entity_can_be_decided(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    graph.mutate(PAGES, {"n": 400}, branch=f"{line}/r")
    graph.mutate(PAGES, {"n": 500}, branch=line)
    [planned] = graph.merge(f"{line}/r", into=line, preview=True).conflicts
    decisions = [{"key": ["0-1"], "decision": {"$properties": {"pages": {"value": 450}}}}]
    done = graph.merge(f"{line}/r", into=line, resolutions={"Book": decisions})

    assert planned.properties == ("pages",)
    assert (done.outcome, done.resolved) == ("merged", 1)
    assert graph.query(BOOKS, branch=line).to_pylist()[0]["b.pages"] == 450


def test_the_base_of_a_merge_can_be_named(graph: AnyGraph, line: str) -> None:
    start = graph.branches.create(f"{line}/r", source=line)
    first = graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r").commit
    graph.mutate(PAGES, {"n": 500}, branch=line)

    done = graph.merge(f"{line}/r", into=line, base=start, preview=True)
    assert (done.base, done.changes["node:Author"].inserted) == (start, 1)
    # As if both had known of it: there is nothing to bring.
    assert graph.merge(f"{line}/r", into=line, base=first, preview=True).outcome == "already_up_to_date"
    with pytest.raises(errors.NotFoundError):
        graph.merge(f"{line}/r", into=line, base="01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_a_merge_tells_what_becomes_of_the_schema(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    text = graph.schema_text(branch=line).replace("born: Date?", "")
    graph.schema_apply(text, branch=f"{line}/r", allow_data_loss=True)

    [step] = graph.merge(f"{line}/r", into=line, preview=True).schema_steps
    assert (step.step.kind, step.step.property_name, step.values_lost) == ("drop_property", "born", 1)
    assert graph.merge(f"{line}/r", into=line).schema_steps == (step,)


def test_a_merge_that_was_reviewed_is_refused_once_either_side_has_moved(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r")
    seen = graph.merge(f"{line}/r", into=line, preview=True)
    graph.mutate(ADD, {"name": "Russ"}, branch=f"{line}/r")
    moved = graph.mutate(PAGES, {"n": 500}, branch=line).commit

    with pytest.raises(errors.PreconditionError) as target:
        graph.merge(f"{line}/r", into=line, if_commit=seen.head)
    with pytest.raises(errors.PreconditionError) as source:
        graph.merge(f"{line}/r", into=line, if_source_commit=seen.source_commit)
    again = graph.merge(f"{line}/r", into=line, preview=True)
    done = graph.merge(f"{line}/r", into=line, if_commit=again.head, if_source_commit=again.source_commit)

    assert (target.value.details["expected"], target.value.details["actual"]) == (seen.head, moved)
    assert f"on branch '{line}/r'" in source.value.message
    assert (done.outcome, done.source_commit) == ("merged", again.source_commit)


# --- history ----------------------------------------------------------------------------------------------------------


def test_commits_are_listed_newest_first_in_pages(graph: AnyGraph, line: str) -> None:
    done = [graph.mutate(ADD, {"name": name}, branch=line).commit for name in ("Lem", "Russ", "Tiptree")]

    page = graph.commits.list(line, limit=2)
    following = graph.commits.list(line, limit=2, page_token=page.next_page_token)

    assert [each.id for each in page] == done[:0:-1]
    assert following[0].id == done[0]
    assert [each.id for each in graph.commits.list(line, kind="merge")] == []
    with pytest.raises(errors.InvalidRequestError, match="greater than zero"):
        graph.commits.list(line, limit=0)


def test_changes_of_a_commit_and_of_a_branch(graph: AnyGraph, line: str) -> None:
    cursor = graph.changes.poll(line).cursor
    done = graph.mutate(PAGES, {"n": 400}, branch=line)

    page = graph.commits.changes(done.commit, types=["Book"])
    feed = graph.changes.drain(line, cursor=cursor)
    none = graph.changes.poll(line, cursor=feed.cursor)

    [change] = page.changes
    assert (change.id, change.op, change.type_name) == ("0-1", "update", "Book")
    assert (change.before.properties["pages"], change.after.properties["pages"]) == (341, 400)
    assert [block.entry.commit for block in feed.blocks] == [done.commit]
    assert feed.blocks[0].changes == page.changes
    assert (none.blocks, none.caught_up) == ([], True)


def test_a_feed_in_small_pages_is_put_together(graph: AnyGraph, line: str) -> None:
    cursor = graph.changes.poll(line).cursor
    graph.write({"Author": [{"name": f"author {each}"} for each in range(5)]}, branch=line)

    page = graph.changes.poll(line, cursor=cursor, limit=2)
    whole = graph.changes.drain(line, cursor=cursor, limit=2)

    assert page.next_page_token is not None
    assert len(whole.blocks) == 1
    assert [each.id for each in whole.blocks[0].changes] == [f"author {each}" for each in range(5)]


def test_a_baseline_is_a_whole_state_and_a_cursor(graph: AnyGraph, line: str) -> None:
    baseline = graph.changes.baseline(line)
    done = graph.mutate(ADD, {"name": "Lem"}, branch=line)
    out = io.BytesIO()
    baseline.write(out)

    lines = out.getvalue().splitlines()
    assert (len(lines), b'"baseline"' in lines[-1]) == (6, True)
    assert baseline.to_dict() == {
        "snapshot_commit_id": baseline.commit,
        "resume_cursor": baseline.resume_cursor,
    }
    feed = graph.changes.poll(line, cursor=baseline.resume_cursor)
    assert [block.entry.commit for block in feed.blocks] == [done.commit]


def test_a_diff_between_any_two_states(graph: AnyGraph, line: str) -> None:
    before = graph.snapshot(branch=line)
    graph.mutate(PAGES, {"n": 400}, branch=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=line)

    found = graph.diff(before, line)

    assert [(each.op, each.id) for each in found] == [("insert", "Lem"), ("update", "0-1")]
    assert (len(found), bool(found), set(found.types)) == (2, True, {"node:Author", "node:Book"})
    assert found.stats["node:Book"].updated == 1
    assert found.to_pylist()[0]["op"] == "insert"
    assert [each.id for each in graph.diff(before, line, types=["Book"])] == ["0-1"]
    assert not graph.diff(line, line)
    with pytest.raises(errors.NotFoundError, match="there is no branch, tag or commit 'nowhere'"):
        graph.diff(line, "nowhere")


def test_a_review_shows_what_a_branch_did_and_not_what_others_did_meanwhile(graph: AnyGraph, line: str) -> None:
    graph.branches.create(f"{line}/r", source=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r")
    graph.mutate(PAGES, {"n": 400}, branch=line)

    review = graph.changes_of(f"{line}/r", against=line)

    assert [(change.op, change.id) for change in review] == [("insert", "Lem")]
    assert graph.diff(line, f"{line}/r", merge_base=True).to_pylist() == review.to_pylist()
    assert sorted((change.op, change.id) for change in graph.diff(line, f"{line}/r")) == [
        ("insert", "Lem"),
        ("update", "0-1"),
    ]
    graph.merge(f"{line}/r", into=line)
    assert not graph.changes_of(f"{line}/r", against=line), "what was merged is not changed any longer"


def test_a_commit_is_undone_unless_something_came_since(graph: AnyGraph, line: str) -> None:
    first = graph.mutate(PAGES, {"n": 400}, branch=line)
    second = graph.mutate(PAGES, {"n": 500}, branch=line)

    with pytest.raises(errors.RevertConflictError) as refused:
        graph.revert(first.commit, branch=line)
    done = graph.revert(second.commit, branch=line, message="no")

    [conflict] = refused.value.conflicts
    assert (conflict.kind, conflict.entity_id) == (RevertConflictKind.CHANGED_SINCE, "0-1")
    assert (done.first, done.last, done.changes["node:Book"].updated) == (second.commit, second.commit, 1)
    assert graph.query(BOOKS, branch=line).to_pylist()[0]["b.pages"] == 400


def test_who_did_what_to_an_entity(graph: AnyGraph, line: str) -> None:
    done = graph.mutate(PAGES, {"n": 400}, branch=line, message="longer")

    events = graph.log_of("Book", "0-1", branch=line)
    found = graph.blame("Book", "0-1", branch=line)

    assert [each.op for each in events] == ["update", "insert"]
    assert (events[0].entry.commit, events[0].entry.message) == (done.commit, "longer")
    assert events[0].changed == ("pages",)
    assert found.properties["pages"].commit == done.commit
    assert found.created.commit == events[-1].entry.commit
    assert found.last.commit == done.commit
