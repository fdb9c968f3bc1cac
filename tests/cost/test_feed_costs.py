"""The requests of the changes of a commit: they follow the change, however large the table is and however it lies."""

from collections import Counter

import pytest
from tests.support import operations as op
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_server import S3Server

from omnigraph import limits
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.feed import PageBounds, commit_page
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage.object_stores import S3Store
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

pytestmark = pytest.mark.s3

TYPE = "node:T0"
# Two entries, the newest once more, and two versions of the table, whatever they tell.
RECORDS = Counter({("GET", "log"): 3, ("HEAD", "versions"): 2, ("GET", "versions"): 2})
SHAPES = [
    pytest.param(10_000, 1, id="10,000 rows in one fragment"),
    pytest.param(10_000, 50, id="10,000 rows in fifty"),
    pytest.param(100_000, 1, id="100,000 rows in one"),
    pytest.param(1_000_000, 1, id="1,000,000 rows in one", marks=pytest.mark.torture),
    pytest.param(1_000_000, 50, id="1,000,000 rows in fifty", marks=pytest.mark.torture),
]


class Counted:
    """A table on a store that counts, read by somebody who has read nothing of it yet."""

    def __init__(self, server: S3Server, proxy: S3Proxy, prefix: str, rows: int, fragments: int) -> None:
        self._proxy, self._prefix = proxy, prefix
        self.rows = rows
        self.parts: GraphContext = op.new_graph(
            S3Store("omnigraph-tests", prefix, options=server.options), types=[TYPE]
        )
        for first in range(0, rows, rows // fragments):
            some = {_id(number): number for number in range(first, first + rows // fragments)}
            write(self.parts, MAIN, op.append(TYPE, some))

    def changed(self, *numbers: int) -> Record:
        entry = write(self.parts, MAIN, op.upsert(TYPE, {_id(number): -1 for number in numbers})).entry
        assert entry is not None
        return entry

    def requests(self, entry: Record, count: int, **only: int) -> Counter[tuple[str, str]]:
        """What it takes to tell the changes of a commit, beside the records."""
        fresh = open_root(S3Store("omnigraph-tests", self._prefix, options=self._proxy.options), read_only=True)
        self._proxy.reset()
        page = commit_page(fresh, entry, ChangeFilter(), page_token=None, bounds=PageBounds(**only))
        assert len(page.changes) == count
        assert {change.op.value for change in page.changes} == {"update"}
        found = self._proxy.counts()
        assert found & RECORDS == RECORDS
        return found - RECORDS


@pytest.mark.parametrize(("rows", "fragments"), SHAPES)
def test_a_commit_is_told_at_the_cost_of_its_change(
    rows: int, fragments: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    table = Counted(s3_server, s3_proxy, s3_prefix, rows, fragments)

    few = table.requests(table.changed(rows // 2), 1)
    # What was deleted; the row as it is; and as it was: where its file ends, and what it holds there.
    assert few.pop(("GET", "deletions")) == 1
    assert few.pop(("GET", "data")) <= 4
    assert not few

    together = table.requests(table.changed(*range(100)), 100)
    assert together.pop(("GET", "deletions")) <= 2  # before and after, where rows were deleted before
    assert together.pop(("GET", "data")) <= 4
    assert not together


def test_rows_of_many_fragments_are_told_at_the_cost_of_those_fragments(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    table = Counted(s3_server, s3_proxy, s3_prefix, 1_000, 50)
    found = table.requests(table.changed(0, 20, 40), 3)
    assert found == Counter({("GET", "deletions"): 3, ("GET", "data"): 4})


def test_a_page_of_a_large_commit_searches_only_where_the_commit_wrote(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Counted(s3_server, s3_proxy, s3_prefix, 1_000, 50)
    entry = table.changed(*range(15))
    monkeypatch.setattr(limits, "CHANGE_ROWS_AT_ONCE_MAX", 10)  # more than this are told by their stored ids
    found = table.requests(entry, 5, changes=5)
    # Of fifty fragments, the one that lost rows and the one that has them now: for the page, and to see that there is
    # more.
    assert found == Counter({("GET", "deletions"): 1, ("GET", "data"): 4})


def _id(number: int) -> str:
    return f"old{number:07d}"
