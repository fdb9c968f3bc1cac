"""Tags: names that do not move, each with a short log of its own."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.branch import branches, tags
from omnigraph.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
)
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


def test_a_tag_names_a_commit_and_stays_there(parts: GraphContext, clock: ManualClock) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    head = parts.log.live_head(MAIN)
    tag = tags.create(parts, "v1", head, actor="ada")
    assert (tag.commit, tag.branch, tag.number, tag.actor) == (head.commit, MAIN, head.number, "ada")
    assert tag.created_at_us == clock.now_us()
    write(parts, MAIN, op.insert(PERSON, {"b": 1}))
    assert tags.read(open_root(parts.store), "v1") == tag


def test_a_tag_of_a_fresh_branch_names_the_commit_it_shows(parts: GraphContext) -> None:
    fork = branches.create(parts, "side")
    tag = tags.create(parts, "v1", fork)
    assert tag.commit == parts.log.live_head(MAIN).commit
    assert (tag.branch, tag.number) == ("side", 1)


def test_a_name_can_be_taken_again_after_it_was_given_back(parts: GraphContext) -> None:
    first = parts.log.live_head(MAIN)
    tags.create(parts, "v1", first)
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    tags.delete(parts, "v1")
    assert tags.names(parts) == []
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    assert tags.read(parts, "v1").number == 2


def test_what_is_not_there_or_there_already_is_said_by_name(parts: GraphContext) -> None:
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    with pytest.raises(AlreadyExistsError, match="'v1'") as taken:
        tags.create(parts, "v1", parts.log.live_head(MAIN))
    assert taken.value.code == "tag_exists"
    for act in (tags.read, tags.delete):
        with pytest.raises(NotFoundError, match="'ghost'") as missing:
            act(parts, "ghost")
        assert missing.value.code == "tag_not_found"
    tags.delete(parts, "v1")
    with pytest.raises(NotFoundError):
        tags.delete(parts, "v1")


def test_of_many_that_take_one_name_at_once_one_does(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)

    def attempt(number: int) -> bool:
        try:
            tags.create(parts, "v1", head, actor=f"{number}")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(attempt, range(6)))
    assert won.count(True) == 1
    assert tags.read(parts, "v1").actor == str(won.index(True))


@pytest.mark.parametrize("name", ["a/b", "..", "100%", "ü 图", "#7", "v1.0"])
def test_every_name_that_can_be_one_names_a_tag_of_its_own(parts: GraphContext, name: str) -> None:
    tags.create(parts, name, parts.log.live_head(MAIN))
    tags.create(parts, "other", parts.log.live_head(MAIN))
    assert tags.names(parts) == sorted([name, "other"])
    assert tags.read(parts, f" {name} ").name == name


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 2_000], ids=["empty", "blank", "control", "long"])
def test_a_name_that_cannot_be_one_is_refused_and_called_a_tag(parts: GraphContext, name: str) -> None:
    for attempt in (
        lambda: tags.create(parts, name, parts.log.live_head(MAIN)),
        lambda: tags.delete(parts, name),
        lambda: tags.read(parts, name),
    ):
        with pytest.raises(InvalidRequestError, match=r"\Atag name"):
            attempt()


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"format": 1}', b'{"format": "x"}'])
def test_a_damaged_tag_is_refused_by_name(store: MemoryStore, parts: GraphContext, body: bytes) -> None:
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    path = paths.tag_entry("v1", 1)
    store.put(path, body)
    with pytest.raises(FormatError, match="tags/v1/"):
        tags.read(parts, "v1")


def test_a_tag_of_a_newer_release_is_refused(store: MemoryStore, parts: GraphContext) -> None:
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    path = paths.tag_entry("v1", 1)
    store.put(path, json.dumps({**json.loads(store.get(path)), "format": 9}).encode())
    with pytest.raises(FormatError, match="format 9: upgrade"):
        tags.read(parts, "v1")


def test_files_and_folders_that_are_no_tags_are_passed_over(store: MemoryStore, parts: GraphContext) -> None:
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    store.put(f"{paths.tag_folder('v1')}0-README", b"")
    store.put(f"{paths.TAGS}raw name/x", b"")
    store.put(f"{paths.TAGS}v%31/{paths.entry_name(1)}.json", store.get(paths.tag_entry("v1", 1)))
    assert tags.names(parts) == ["v1"]
    assert tags.read(parts, "v1").number == 1


def test_a_graph_opened_for_reading_has_its_tags_left_alone(store: MemoryStore, parts: GraphContext) -> None:
    tags.create(parts, "v1", parts.log.live_head(MAIN))
    looking = open_root(store, read_only=True)
    for attempt in (
        lambda: tags.create(looking, "v2", parts.log.live_head(MAIN)),
        lambda: tags.delete(looking, "v1"),
    ):
        with pytest.raises(PermissionDeniedError, match="read-only"):
            attempt()
    assert tags.names(looking) == ["v1"]
