"""How much a served graph keeps for reads."""

from omnigraph.server.main import build_parser, build_settings
from omnigraph.server.opening import open_graphs


def test_an_operator_says_how_much_a_graph_may_keep(library: str) -> None:
    args = build_parser().parse_args(["--store", library, "--unauthenticated", "--cache-memory", "123456"])

    graphs = open_graphs(build_settings(args, {}))

    try:
        assert graphs.get("library").graph.stats().cache.bytes_max == 123_456
    finally:
        graphs.close()
