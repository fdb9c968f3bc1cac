"""All S3 traffic, ours and the table library's, passes the proxy, and it cuts where it is told."""

import signal
import subprocess
import sys
from collections.abc import Callable

import lance
import pyarrow as pa
import pytest
from tests.support.s3_proxy import Cut, S3Proxy

from omnigraph import limits
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, OutcomeUnknown, StoreTransient
from omnigraph.storage.object_stores import S3Store, open_store, table_options

pytestmark = pytest.mark.s3

BUCKET = "omnigraph-tests"


@pytest.fixture
def store(s3_proxy: S3Proxy, s3_prefix: str) -> S3Store:
    return S3Store(BUCKET, s3_prefix, options=s3_proxy.options)


def test_every_request_is_counted_by_method_and_kind_of_path(store: S3Store, s3_proxy: S3Proxy) -> None:
    store.put_if_absent("__manifest/log/main/1.json", b"")
    store.put("__manifest/log/main/hint", b"")
    store.put("__recovery/1.json", b"")
    store.copy("__recovery/1.json", "nodes/1/data/2.lance")
    store.get("nodes/1/data/2.lance")
    list(store.list("nodes/"))
    store.delete("__recovery/1.json")
    assert s3_proxy.counts() == {
        ("PUT", "log"): 2,
        ("PUT", "recovery"): 1,
        ("COPY", "data"): 1,
        ("GET", "data"): 1,
        ("LIST", "other"): 1,
        ("POST", "other"): 1,
    }
    assert s3_proxy.mutations == 5
    assert [request.conditional for request in s3_proxy.seen()] == [True] + [False] * 6
    assert s3_proxy.seen()[0].path.endswith("/__manifest/log/main/1.json")
    assert {request.status for request in s3_proxy.seen()} == {200}
    s3_proxy.reset()
    assert (s3_proxy.seen(), s3_proxy.mutations) == ((), 0)


def test_a_listing_asks_for_no_more_pages_than_it_needs(store: S3Store, s3_store: S3Store, s3_proxy: S3Proxy) -> None:
    for number in range(limits.STORE_LIST_PAGE_KEYS_MAX + 1):
        s3_store.put(f"many/{number:05}", b"")
    s3_proxy.reset()
    for limit, requests in ((1, 1), (limits.STORE_LIST_PAGE_KEYS_MAX, 1), (None, 2)):
        found = list(store.list("many/", limit=limit))
        assert len(found) == (limit or limits.STORE_LIST_PAGE_KEYS_MAX + 1)
        assert s3_proxy.counts() == {("LIST", "other"): requests}
        s3_proxy.reset()
    store.delete_prefix("many/")
    assert s3_proxy.counts() == {("LIST", "other"): 2, ("POST", "other"): 2}
    assert list(store.list("")) == []


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.ANSWER])
def test_a_conditional_put_that_is_cut_is_unknown_and_reading_back_tells(
    store: S3Store, s3_store: S3Store, s3_proxy: S3Proxy, cut: Cut
) -> None:
    s3_proxy.cut_at(1, cut)
    with pytest.raises(OutcomeUnknown):
        store.put_if_absent("a", b"ours")
    if cut is Cut.ANSWER:
        assert store.get("a") == b"ours"
        with pytest.raises(ObjectExists):
            store.put_if_absent("a", b"again")
    else:
        with pytest.raises(ObjectNotFound):
            s3_store.get("a")
        store.put_if_absent("a", b"again")


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.ANSWER])
def test_other_requests_that_are_cut_are_transient(store: S3Store, s3_proxy: S3Proxy, cut: Cut) -> None:
    store.put("a", b"")
    requests: tuple[Callable[[], object], ...] = (
        lambda: store.put("b", b""),
        lambda: store.copy("a", "c"),
        lambda: store.delete("a"),
    )
    for request in requests:
        s3_proxy.cut_at(1, cut)
        with pytest.raises(StoreTransient):
            request()
    assert [listed.path for listed in store.list("")] == (["b", "c"] if cut is Cut.ANSWER else ["a"])


def test_an_opened_store_tries_again_what_was_cut(s3_prefix: str, s3_proxy: S3Proxy) -> None:
    store = open_store(f"s3://{BUCKET}/{s3_prefix}", s3=s3_proxy.options)
    s3_proxy.cut_at(1, Cut.ANSWER)
    store.put("a", b"1")
    assert s3_proxy.counts() == {("PUT", "other"): 2}
    s3_proxy.cut_at(1, Cut.ANSWER)
    with pytest.raises(OutcomeUnknown):
        store.put_if_absent("b", b"1")
    assert s3_proxy.counts() == {("PUT", "other"): 3}


def test_the_chosen_request_is_the_one_that_is_cut(store: S3Store, s3_proxy: S3Proxy) -> None:
    s3_proxy.cut_at(3, Cut.BEFORE)
    store.put("1", b"")
    list(store.list(""))
    store.put("2", b"")
    with pytest.raises(StoreTransient):
        store.put("3", b"")
    store.put("4", b"")
    assert [listed.path for listed in store.list("")] == ["1", "2", "4"]


@pytest.mark.parametrize(("cut", "seen"), [(Cut.BEFORE, []), (Cut.NOTHING, []), (Cut.ANSWER, ["a"])])
def test_a_callback_runs_before_the_request_or_after_it(
    store: S3Store, s3_store: S3Store, s3_proxy: S3Proxy, cut: Cut, seen: list[str]
) -> None:
    found: list[list[str]] = []
    s3_proxy.cut_at(1, cut, lambda: found.append([listed.path for listed in s3_store.list("")]))
    if cut is Cut.NOTHING:
        store.put("a", b"")
    else:
        with pytest.raises(StoreTransient):
            store.put("a", b"")
    assert found == [seen]


# What the client does that is going to be killed.
PUT_THREE = """
import sys
from omnigraph.storage.object_stores import S3Store
from tests.support.s3_server import options_for
bucket, prefix, endpoint = sys.argv[1:]
store = S3Store(bucket, prefix, options=options_for(endpoint))
sys.stdin.readline()
for number in range(3):
    store.put(str(number), b"")
"""


@pytest.mark.parametrize(("cut", "there"), [(Cut.BEFORE, ["0"]), (Cut.ANSWER, ["0", "1"])])
def test_a_client_can_be_killed_at_a_chosen_request(
    s3_store: S3Store, s3_proxy: S3Proxy, s3_prefix: str, cut: Cut, there: list[str]
) -> None:
    command = [sys.executable, "-c", PUT_THREE, BUCKET, s3_prefix, s3_proxy.endpoint]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as client:
        s3_proxy.cut_at(2, cut, client.kill)
        client.communicate(b"go\n")
    assert client.returncode == -signal.SIGKILL
    assert [listed.path for listed in s3_store.list("")] == there


def test_the_table_library_writes_and_reads_through_the_proxy(store: S3Store, s3_proxy: S3Proxy) -> None:
    options = table_options(store)
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), f"{store.uri}/nodes/x", storage_options=options)
    counts = s3_proxy.counts()
    assert {kind: counts["PUT", kind] for kind in ("data", "transactions", "versions")} == {
        "data": 1,
        "transactions": 1,
        "versions": 1,
    }
    assert s3_proxy.mutations == 3
    s3_proxy.reset()
    table = lance.dataset(f"{store.uri}/nodes/x", storage_options=options).to_table()
    assert table.column("a").to_pylist() == [1, 2, 3]
    assert s3_proxy.counts()["GET", "data"] >= 1
    assert len(list(store.list("nodes/x/"))) == 3


def test_a_write_of_the_table_library_can_be_cut_at_each_of_its_requests(store: S3Store, s3_proxy: S3Proxy) -> None:
    options = table_options(store)
    for mutation in (1, 2, 3):
        s3_proxy.reset()
        # It repeats what was cut by itself, so the write succeeds with one request more.
        s3_proxy.cut_at(mutation, Cut.BEFORE)
        lance.write_dataset(pa.table({"a": [mutation]}), f"{store.uri}/nodes/{mutation}", storage_options=options)
        assert s3_proxy.mutations == 4
        assert [request.status for request in s3_proxy.seen()].count(0) == 1
