"""The same API over a bucket."""

import pytest
from tests.support.s3_server import S3Server

import omnigraph
from omnigraph import ConstraintError, OpenOptions

SCHEMA = "node Person { name: String @key  email: String? @unique }  edge Knows: Person -> Person"
BUCKET = "omnigraph-tests"


@pytest.mark.s3
def test_a_graph_in_a_bucket_is_written_and_read_like_any_other(s3_server: S3Server, s3_prefix: str) -> None:
    uri, options = f"s3://{BUCKET}/{s3_prefix}", OpenOptions(s3=s3_server.options)
    with omnigraph.init(uri, SCHEMA, options=options) as graph:
        people = [{"name": "Ada", "email": "a@x"}, {"name": "Bob"}]
        graph.write({"Person": people}, {"Knows": [{"from": "Ada", "to": "Bob"}]})
    with omnigraph.open(uri, options=options) as graph:
        with pytest.raises(ConstraintError, match="held by 'Ada' and 'Eve'"):
            graph.mutate('query q() { insert Person { name: "Eve", email: "a@x" } }')
        found = graph.query("query q() { match { $p: Person  $p knows $f } return { $p.name as p, $f.name as f } }")
        assert found.to_pylist() == [{"p": "Ada", "f": "Bob"}]
        gone = graph.mutate('query q() { delete Person where name = "Bob" }')
        assert (gone.affected_nodes, gone.affected_edges) == (1, 1)
    with omnigraph.open(uri, read_only=True, options=options) as graph:
        assert (graph.count("Person"), graph.count("Knows")) == (1, 0)
        assert graph.lance_table("Person").count_rows() == 1
