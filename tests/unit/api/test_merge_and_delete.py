"""Merging a branch and deleting it in one call, while others write there."""

from pathlib import Path

import omnigraph
from omnigraph.failpoints import Failpoint, armed

ADD = "query add($name: String) { insert Person { name: $name } }"


def test_a_branch_that_moved_on_while_it_was_merged_is_not_deleted(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "graph", "node Person { name: String @key }") as graph:
        graph.branches.create("work")
        graph.mutate(ADD, {"name": "ann"}, branch="work")
        late: list[str | None] = []

        def write_there() -> None:
            if not late:
                late.append("")
                late[0] = graph.mutate(ADD, {"name": "bob"}, branch="work").commit

        with armed(Failpoint.PUBLISH_INTENT_CLEARED, write_there):
            done = graph.merge("work", delete_branch=True)

        assert (done.commit is not None, done.branch_deleted) == (True, False)
        assert done.branch_delete_error == (
            f"precondition failed on branch 'work': expected head '{done.source_commit}' but current is {late[0]}"
        )
        assert (graph.count("Person"), graph.count("Person", branch="work")) == (1, 2)
        assert graph.merge("work", delete_branch=True).branch_deleted
        assert graph.count("Person") == 2
