"""Answers of a real server that are lost on the way: every write is there once."""

import itertools
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from tests.support.s3_proxy import Cut, S3Proxy, s3_proxy

import omnigraph
from omnigraph import errors
from omnigraph.client.graph import RemoteGraph
from omnigraph.testing.server import RunningServer

BOOKS = "query q() { match { $b: Book } return { $b.isbn } order { $b.isbn } }"
_LINES = itertools.count(1)


@pytest.fixture(scope="module")
def proxy(library_server: RunningServer) -> Iterator[S3Proxy]:
    """What loses answers between a client and the server."""
    address = urlsplit(library_server.url)
    assert address.hostname is not None and address.port is not None
    with s3_proxy((address.hostname, address.port)) as running:
        yield running


@pytest.fixture
def graph(proxy: S3Proxy) -> Iterator[RemoteGraph]:
    """The library, behind the proxy."""
    proxy.reset()
    with omnigraph.connect(proxy.endpoint, graph="library") as found:
        yield found


@pytest.fixture
def line(graph: RemoteGraph) -> str:
    """A branch of the test's own."""
    name = f"lost-{next(_LINES)}"
    graph.branches.create(name)
    return name


def _wrote(graph: RemoteGraph, line: str) -> str | None:
    # Edges have no key here: whatever is done twice is there twice.
    return graph.write(edges={"Wrote": [{"from": "Butler", "to": "0-2"}]}, branch=line).commit


def _loaded(graph: RemoteGraph, line: str) -> str | None:
    return graph.load(b'{"edge":"Wrote","from":"Butler","to":"0-2","data":{}}', mode="append", branch=line).commit


def _mutated(graph: RemoteGraph, line: str) -> str | None:
    text = 'query q() { insert Wrote { from: "Butler", to: "0-2" } }'
    return graph.mutate(text, branch=line).commit


WRITES: tuple[Callable[[RemoteGraph, str], str | None], ...] = (_wrote, _loaded, _mutated)


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.ANSWER])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__.strip("_"))
def test_a_write_whose_answer_is_lost_is_done_once(
    graph: RemoteGraph, proxy: S3Proxy, line: str, write: Callable[[RemoteGraph, str], str | None], cut: Cut
) -> None:
    proxy.cut_at(1, cut)

    commit = write(graph, line)

    assert graph.count("Wrote", branch=line) == 2
    assert [each.id for each in graph.commits.list(line, limit=1)] == [commit]
    assert proxy.mutations == 3, "the branch, the write, and the write again"


def test_a_condition_that_held_still_holds_when_the_answer_is_lost(
    graph: RemoteGraph, proxy: S3Proxy, line: str
) -> None:
    head = graph.snapshot(branch=line).commit
    proxy.cut_at(1, Cut.ANSWER)

    done = graph.mutate('query q() { delete Book where isbn = "0-2" }', branch=line, if_commit=head)

    assert (done.replayed, done.affected_nodes) == (True, 1)


def test_a_schema_and_an_undoing_are_done_once(graph: RemoteGraph, proxy: S3Proxy, line: str) -> None:
    text = f"{graph.schema_text(branch=line)}\nnode Shelf {{ name: String @key }}"
    proxy.cut_at(1, Cut.ANSWER)
    applied = graph.schema_apply(text, branch=line)
    deleted = graph.mutate('query q() { delete Book where isbn = "0-2" }', branch=line)
    proxy.cut_at(1, Cut.ANSWER)
    undone = graph.revert(str(deleted.commit), branch=line)

    kinds = [each.kind for each in graph.commits.list(line, limit=4)]
    assert kinds == ["revert", "mutation", "schema", "load"]
    assert undone.replayed
    assert applied.number == 2


def test_a_question_whose_answer_is_lost_is_asked_again(graph: RemoteGraph, proxy: S3Proxy, line: str) -> None:
    proxy.cut_at(1, Cut.ANSWER)

    assert len(graph.query(BOOKS, branch=line)) == 2


def test_nobody_says_that_a_branch_was_made_where_nobody_knows(graph: RemoteGraph, proxy: S3Proxy, line: str) -> None:
    proxy.cut_at(1, Cut.ANSWER)

    with pytest.raises(errors.OutcomeUnknownError, match="it is unknown whether the write was done"):
        graph.branches.create(f"{line}/r", source=line)

    assert f"{line}/r" in graph.branches


def test_a_server_that_is_not_there_is_told_as_such() -> None:
    with (
        omnigraph.connect("http://127.0.0.1:9", graph="library", patience_s=0.1) as graph,
        pytest.raises(errors.UnavailableError, match=r"there is no answer at http://127.0.0.1:9/graphs/library"),
    ):
        graph.count("Book")


def test_a_server_with_one_graph_needs_no_name(library_server: RunningServer) -> None:
    for address in (library_server.url, f"{library_server.url}/", f"{library_server.url}/graphs/library"):
        with omnigraph.connect(address) as graph:
            assert graph.uri == f"{library_server.url}/graphs/library"
            assert graph.count("Author") == 2


def test_an_address_that_is_none_is_refused(library_server: RunningServer) -> None:
    for address in ("library", "ftp://host", "http://", "http://host?x=1"):
        with pytest.raises(errors.InvalidRequestError, match="is not a server address"):
            omnigraph.connect(address, graph="library")
    with pytest.raises(errors.InvalidRequestError, match="the address names the graph 'library'"):
        omnigraph.connect(f"{library_server.url}/graphs/library", graph="other")
    with (
        omnigraph.connect(library_server.url, graph="other") as graph,
        pytest.raises(errors.NotFoundError, match="graph 'other' not found"),
    ):
        graph.count("Book")
