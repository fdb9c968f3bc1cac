"""What a server takes from a cluster."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.small_cluster import CONFIG, QUERIES, Cluster

from omnigraph.cluster.access import graph_address, read_policies, read_stored_queries
from omnigraph.cluster.declared import DeclaredProvider
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.serving import AppliedRevision, embedding_environment, load_applied
from omnigraph.cluster.sidecars import Sidecar, SidecarKind, Sidecars
from omnigraph.cluster.state import read_state
from omnigraph.embedding.choose import choose_provider
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError, UnavailableError
from omnigraph.storage.object_stores.open import open_store

TWO = {**CONFIG["graphs"], "other": {"schema": "people.pg"}}
LISTING = """\
version: 1
groups: { team: [act-a] }
rules: [ { id: list, allow: { actors: { group: team }, actions: [graph_list] } } ]
"""


@pytest.fixture
def two(applied_cluster: Cluster) -> Cluster:
    """A cluster of two graphs, one of them with a query and a policy."""
    applied_cluster.declare(graphs=TWO)
    assert applied_cluster.apply().document["converged"]
    return applied_cluster


def served(cluster: Cluster) -> AppliedRevision:
    return load_applied(cluster.folder)


def aside(cluster: Cluster) -> dict[str, str]:
    """The graphs that are put aside, with the code of the reason."""
    graphs = served(cluster).graphs
    return {each.id: each.quarantine.partition(":")[0] for each in graphs if each.quarantine is not None}


def edit(cluster: Cluster, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the ledger by hand."""
    resources = cluster.state()["applied_revision"]["resources"]
    change(resources)
    document = cluster.state()
    document["applied_revision"]["resources"] = resources
    document["state_revision"] += 1
    body = json.dumps(document).encode()
    read_state(body)
    (cluster.folder / "__cluster" / "state.json").write_bytes(body)


def test_everything_that_was_applied_is_served(two: Cluster) -> None:
    two.write("listing.yaml", LISTING)
    two.declare(
        graphs={
            "people": {
                **CONFIG["graphs"]["people"],
                "embedding_provider": "p",
                "external_blobs": {"allow": [{"base": "s3://b/p/", "scope": "server_safe"}]},
            },
            "other": {"schema": "people.pg"},
        },
        policies={**CONFIG["policies"], "own": {"file": "listing.yaml", "applies_to": ["cluster"]}},
        providers={"embedding": {"p": {"kind": "mock"}}},
    )
    assert two.apply().document["converged"]
    found = served(two)
    assert (found.root, found.revision) == (str(two.folder), two.state()["state_revision"])
    other, people = found.graphs
    assert (people.id, people.uri, people.quarantine) == ("people", f"{two.folder}/graphs/people.omni", None)
    assert people.queries == {"find": QUERIES}
    assert people.policy is not None
    assert people.policy.decide("act-a", "read").allowed
    assert people.provider == DeclaredProvider("mock")
    assert [each.base for each in people.external_blobs.allow] == ["s3://b/p/"]
    assert (other.policy, other.provider, other.queries, other.external_blobs.allow) == (None, None, {}, ())
    assert found.policy is not None
    assert found.policy.decide("act-a", "graph_list").allowed


def test_what_is_declared_and_not_applied_is_not_served(two: Cluster) -> None:
    two.write("people.gq", QUERIES.replace("find", "seek"))
    two.declare()
    assert [each.id for each in served(two).graphs] == ["other", "people"]
    assert set(served(two).graphs[1].queries) == {"find"}


def test_a_cluster_is_found_by_its_storage_and_by_the_folder_of_its_configuration(cluster: Cluster) -> None:
    cluster.declare(storage="elsewhere")
    cluster.begin()
    cluster.apply()
    assert load_applied(cluster.folder).root == load_applied(cluster.folder / "elsewhere").root


def test_without_a_ledger_or_graphs_there_is_nothing_to_serve(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError) as missing:
        served(cluster)
    assert missing.value.code == "cluster_state_missing"
    cluster.begin()
    with pytest.raises(InvalidRequestError) as empty:
        served(cluster)
    assert empty.value.code == "cluster_empty"


def test_a_graph_whose_stored_query_is_lost_is_put_aside_and_the_others_are_served(two: Cluster) -> None:
    (query,) = two.files("resources/query")
    query.unlink()
    assert aside(two) == {"people": "catalog_payload_missing"}
    with pytest.raises(InvalidRequestError) as caught:
        load_applied(two.folder, require_all=True)
    assert caught.value.code == "cluster_no_healthy_graphs"


@pytest.mark.parametrize("body", [b"", b"version: 1\n"])
def test_a_graph_is_never_served_without_its_policy(two: Cluster, body: bytes) -> None:
    (policy,) = two.files("resources/policy")
    policy.write_bytes(body)
    assert aside(two) == {"people": "catalog_payload_digest_mismatch"}
    policy.unlink()
    assert aside(two) == {"people": "catalog_payload_missing"}


def test_a_ledger_that_does_not_say_what_a_policy_is_for_serves_nothing_unguarded(two: Cluster) -> None:
    edit(two, lambda resources: resources["policy.base"].pop("applies_to"))
    with pytest.raises(InvalidRequestError, match=r"the ledger has no bindings of policy\.base"):
        served(two)


def test_a_graph_with_two_policies_is_put_aside(two: Cluster) -> None:
    edit(two, lambda resources: resources.update({"policy.more": resources["policy.base"]}))
    assert aside(two) == {"people": "duplicate_policy_binding"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda found: found["graph.people"].update(embedding_provider="x"), "external_blob_policy_digest_mismatch"),
        (lambda found: found["graph.people"].update(digest="0" * 64), "external_blob_policy_digest_mismatch"),
        (lambda found: found["schema.people"].update(digest="0" * 64), "external_blob_policy_digest_mismatch"),
        (lambda found: found.pop("provider.embedding.p"), "embedding_provider_missing"),
        (lambda found: found["provider.embedding.p"].pop("embedding_profile"), "embedding_provider_profile_missing"),
        (
            lambda found: found["provider.embedding.p"].update(embedding_profile={"kind": "openai"}),
            "embedding_provider_digest_mismatch",
        ),
    ],
)
def test_a_ledger_that_does_not_agree_with_itself_puts_its_graph_aside(
    two: Cluster, change: Callable[[dict[str, Any]], object], code: str
) -> None:
    people = {**CONFIG["graphs"]["people"], "embedding_provider": "p"}
    two.declare(graphs={**TWO, "people": people}, providers={"embedding": {"p": {"kind": "mock"}}})
    assert two.apply().document["converged"]
    edit(two, change)
    assert aside(two) == {"people": code}


@pytest.mark.parametrize("kind", SidecarKind)
def test_a_graph_that_somebody_is_at_work_on_is_put_aside(two: Cluster, kind: SidecarKind) -> None:
    note = Sidecar("01J9ZB6V3N4Q5R6S7T8V9W0X1Y", "2026-01-01T00:00:00Z", kind, "people", "x")
    Sidecars(open_store(str(two.folder))).put(note)
    assert aside(two) == {"people": "cluster_recovery_pending"}


def test_a_note_that_cannot_be_read_stops_a_server(two: Cluster) -> None:
    open_store(str(two.folder)).put("__cluster/recoveries/x.json", b"{")
    with pytest.raises(UnavailableError) as caught:
        served(two)
    assert caught.value.code == "recovery_sidecar_read_error"


def test_a_ledger_of_a_newer_release_is_not_guessed_at(two: Cluster) -> None:
    path = two.folder / "__cluster" / "state.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(UnavailableError) as caught:
        served(two)
    assert caught.value.code == "unsupported_state_version"


def test_a_provider_takes_its_key_from_the_variable_that_was_named() -> None:
    declared = DeclaredProvider("openai", "https://host/v1", "m", "${SOME_KEY}")
    variables = {"SOME_KEY": "sk-1", "OPENAI_API_KEY": "another", "OMNIGRAPH_EMBED_PROVIDER": "mock"}
    provider = choose_provider(embedding_environment(declared, variables))
    assert provider.model == "m"
    assert embedding_environment(declared, variables)["OPENAI_API_KEY"] == "sk-1"
    with pytest.raises(InvalidRequestError, match="SOME_KEY is required"):
        embedding_environment(declared, {"OPENAI_API_KEY": "another"})
    assert choose_provider(embedding_environment(DeclaredProvider("mock"), {})).model is None


# --- the command line's ways in ---------------------------------------------------------------------------------------


def test_a_graph_of_a_cluster_is_named_where_there_are_several(two: Cluster) -> None:
    root = str(two.folder)
    assert graph_address(root, "other") == f"{root}/graphs/other.omni"
    with pytest.raises(InvalidRequestError, match="the cluster has other, people; give --graph ID"):
        graph_address(root, None)
    with pytest.raises(NotFoundError, match="graph 'x' not found; the cluster has other, people"):
        graph_address(root, "x")
    two.declare(graphs={**TWO, "x": {"schema": "people.pg"}})
    with pytest.raises(NotFoundError) as caught:
        graph_address(root, "x")
    assert caught.value.code == "graph_not_applied"


def test_queries_and_policies_are_the_files_ones_beside_a_configuration_and_else_the_applied_ones(two: Cluster) -> None:
    two.write("people.gq", QUERIES.replace("find", "seek"))
    two.write("base.policy.yaml", "version: 1\n")
    two.declare(graphs=TWO)
    assert set(read_stored_queries(str(two.folder), "people").texts) == {"seek"}
    assert read_policies(str(two.folder))[0].text == "version: 1\n"
    root = two.folder.rename(two.folder.with_name("moved"))
    (root / "cluster.yaml").unlink()
    stored = read_stored_queries(str(root), "people")
    assert stored.texts == {"find": QUERIES}
    assert stored.schema().node("Person") is not None
    assert read_policies(str(root))[0].policy().decide("act-a", "read").allowed


@pytest.mark.parametrize(
    "way", [read_policies, lambda root: read_stored_queries(root, None), lambda root: graph_address(root, None)]
)
def test_a_place_without_a_cluster_is_told_as_such(cluster: Cluster, way: Callable[[str], object]) -> None:
    with pytest.raises(GraphError) as caught:
        way(str(cluster.folder / "nowhere"))
    assert caught.value.code == "cluster_state_missing"
    assert not Ledger(open_store(str(cluster.folder))).exists()
