"""Plans and what becomes of them."""

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest
from tests.support.small_cluster import CONFIG, POLICY, QUERIES, SCHEMA, Cluster, codes, made_of

import omnigraph
from omnigraph.cluster import addresses
from omnigraph.cluster.apply import apply
from omnigraph.cluster.changes import Change, Operation
from omnigraph.cluster.serving import ServedGraph, load_applied
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.open import open_store
from omnigraph.testing.faults import Fault, Faults
from omnigraph.testing.stores import FaultyStore

BOTH = {"base": {"file": "base.policy.yaml", "applies_to": ["people", "more"]}}
EMPTY: dict[str, Any] = {"graphs": {}, "policies": {}}


def graph(cluster: Cluster, name: str = "people") -> "omnigraph.Graph":
    return omnigraph.open(open_store(str(cluster.folder / "graphs" / f"{name}.omni"), durability="process"))


def statuses(cluster: Cluster) -> dict[str, str]:
    return {address: each["status"] for address, each in cluster.state()["resource_statuses"].items()}


def test_a_cluster_comes_about_in_three_steps(cluster: Cluster) -> None:
    assert codes(cluster.apply(), "error") == {"state_missing"}
    begun = cluster.begin()
    assert (begun.is_ok, begun.document["operation"], begun.document["resource_digests"]) == (True, "import", {})
    planned = cluster.plan()
    assert [each["operation"] for each in planned.document["changes"]] == ["create"] * 4
    assert cluster.state()["state_revision"] == 1
    outcome = cluster.apply()
    assert outcome.is_ok
    assert outcome.document["actor"] == "act-op"
    assert (outcome.document["applied_count"], outcome.document["deferred_count"]) == (4, 0)
    assert (outcome.document["converged"], outcome.document["state_written"]) == (True, True)
    assert set(statuses(cluster).values()) == {"applied"}
    assert cluster.state()["applied_revision"]["config_digest"] == outcome.document["desired_revision"]["config_digest"]
    with graph(cluster) as opened:
        assert opened.schema_text() == SCHEMA
        assert opened.commits.list()[0].actor == "act-op"


def test_applying_again_what_is_there_writes_nothing(applied_cluster: Cluster) -> None:
    before = {each: each.read_bytes() for each in applied_cluster.files("")}
    outcome = applied_cluster.apply()
    assert (outcome.document["changes"], outcome.document["converged"]) == ([], True)
    assert outcome.document["state_written"] is False
    assert {each: each.read_bytes() for each in applied_cluster.files("")} == before


def test_a_plan_and_a_status_write_nothing(applied_cluster: Cluster) -> None:
    applied_cluster.write("people.pg", SCHEMA.replace("}", " age: I32? }"))
    before = {each: each.read_bytes() for each in applied_cluster.folder.rglob("*") if each.is_file()}
    assert applied_cluster.plan().is_ok
    assert applied_cluster.status().is_ok
    assert {each: each.read_bytes() for each in applied_cluster.folder.rglob("*") if each.is_file()} == before


def test_a_schema_that_grows_is_applied_with_its_steps_and_its_queries(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.write("people.pg", SCHEMA.replace("}", " age: I32? }"))
    cluster.write("people.gq", QUERIES.replace("$p.name }", "$p.name, $p.age }"))
    planned = cluster.plan()
    (schema,) = [each for each in planned.document["changes"] if each["resource"] == "schema.people"]
    assert schema["migration"]["supported"] is True
    assert [each["kind"] for each in schema["migration"]["steps"]] == ["add_property"]
    outcome = cluster.apply()
    assert made_of(outcome) == {"graph.people": "derived", "schema.people": "applied", "query.people.find": "applied"}
    with graph(cluster) as opened:
        assert "age" in opened.schema_text()
    assert cluster.apply().document["changes"] == []


def test_a_comment_in_a_schema_is_applied_once_and_for_all(applied_cluster: Cluster) -> None:
    applied_cluster.write("people.pg", f"// people\n{SCHEMA}")
    assert applied_cluster.apply().document["converged"]
    assert applied_cluster.apply().document["changes"] == []
    assert codes(applied_cluster.refresh()) == set()
    assert applied_cluster.apply().document["changes"] == []


def test_what_a_schema_drops_stays_readable_in_older_commits(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    with graph(cluster) as opened:
        opened.mutate('query q() { insert Person { name: "Ada" } }')
        before = opened.commits.list()[0].id
    cluster.write("people.pg", "node Place { name: String @key }\n")
    cluster.write("people.gq", QUERIES.replace("Person", "Place"))
    assert cluster.apply().document["converged"]
    with graph(cluster) as opened:
        asked = opened.snapshot(commit=before).query("query q() { match { $p: Person } return { $p.name } }")
        assert asked.to_pylist() == [{"p.name": "Ada"}]


def test_a_change_that_no_step_makes_blocks_what_depends_on_it_and_nothing_else(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.write("people.pg", SCHEMA.replace("name: String", "name: I64"))
    cluster.write("people.gq", QUERIES.replace("$n: String", "$n: I64"))
    cluster.write("base.policy.yaml", POLICY.replace("[read]", "[read, export]"))
    outcome = cluster.apply()
    assert not outcome.is_ok
    assert "apply_unsupported_change" in codes(outcome, "error")
    assert "apply_dependency_blocked" in codes(outcome, "warning")
    made = made_of(outcome)
    assert made["schema.people"] == made["query.people.find"] == "blocked"
    assert made["policy.base"] == "applied"
    assert outcome.document["converged"] is False
    assert statuses(cluster)["query.people.find"] == "blocked"
    cluster.write("people.pg", SCHEMA)
    cluster.write("people.gq", QUERIES)
    assert cluster.apply().document["converged"]
    assert set(statuses(cluster).values()) == {"applied"}


def test_a_query_that_is_declared_no_more_goes(applied_cluster: Cluster) -> None:
    applied_cluster.declare(graphs={"people": {"schema": "people.pg"}})
    outcome = applied_cluster.apply()
    assert made_of(outcome) == {"graph.people": "derived", "query.people.find": "applied"}
    assert "query.people.find" not in applied_cluster.state()["applied_revision"]["resources"]


def test_a_policy_for_other_graphs_is_a_change_of_bindings(applied_cluster: Cluster) -> None:
    more = {**CONFIG["graphs"], "more": {"schema": "people.pg"}}
    applied_cluster.declare(graphs=more, policies=BOTH)
    outcome = applied_cluster.plan()
    (change,) = [each for each in outcome.document["changes"] if each["resource"] == "policy.base"]
    assert (change["binding_change"], change["metadata_change"]) == (True, "policy_bindings")
    assert change["before_digest"] == change["after_digest"]
    assert "  Update policy.base [bindings]" in outcome.summary
    assert applied_cluster.apply().document["converged"]
    assert applied_cluster.state()["applied_revision"]["resources"]["policy.base"]["applies_to"] == ["more", "people"]


def test_a_provider_and_places_for_blobs_are_kept_with_the_graph(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    blobs = {"allow": [{"base": "s3://bucket/photos/", "scope": "server_safe"}]}
    people = {**CONFIG["graphs"]["people"], "embedding_provider": "default", "external_blobs": blobs}
    key = {"kind": "openai", "api_key": "${SOME_KEY}"}
    cluster.declare(graphs={"people": people}, providers={"embedding": {"default": key}})
    assert made_of(cluster.apply()) == {"provider.embedding.default": "applied", "graph.people": "applied"}
    kept = cluster.state()["applied_revision"]["resources"]
    assert kept["graph.people"]["embedding_provider"] == "default"
    assert kept["graph.people"]["external_blob_policy"] == blobs
    assert kept["provider.embedding.default"]["embedding_profile"] == key
    cluster.declare(graphs={"people": people}, providers={"embedding": {"default": {**key, "model": "m"}}})
    (change,) = cluster.plan().document["changes"]
    assert (change["resource"], change["metadata_change"]) == ("provider.embedding.default", "embedding_profile")


def test_a_graph_is_deleted_only_on_somebodys_word(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.declare(**EMPTY)
    planned = cluster.plan()
    assert planned.is_ok
    (gate,) = planned.document["approvals_required"]
    assert (gate["resource"], gate["satisfied"]) == ("graph.people", False)
    outcome = cluster.apply()
    assert outcome.is_ok
    assert "approval_required" in codes(outcome, "warning")
    assert outcome.document["converged"] is False
    with graph(cluster) as opened:
        assert opened.schema_text() == SCHEMA
    given = cluster.approve("graph.people")
    assert given.document["approved_by"] == "act-boss"
    assert cluster.plan().document["approvals_required"][0]["satisfied"] is True
    assert cluster.apply().document["converged"]
    assert not list((cluster.folder / "graphs").rglob("*.json"))
    assert cluster.state()["applied_revision"]["resources"] == {}
    (record,) = cluster.state()["approval_records"].values()
    assert record["approval_id"] == given.document["approval_id"]
    assert json.loads(cluster.files("approvals")[0].read_bytes()) == record
    assert record["consumed_at"]


def test_what_guards_and_feeds_a_graph_stays_as_long_as_the_graph_does(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.declare(**EMPTY)
    assert made_of(cluster.apply()) == {
        "policy.base": "deferred",
        "query.people.find": "deferred",
        "schema.people": "deferred",
        "graph.people": "blocked",
    }
    assert set(cluster.state()["applied_revision"]["resources"]) == set(made_of(cluster.plan()))


def test_a_policy_that_gets_stricter_waits_for_nobody_and_goes_on_guarding_what_is_to_go(
    applied_cluster: Cluster,
) -> None:
    cluster = applied_cluster
    cluster.declare(graphs={**CONFIG["graphs"], "more": {"schema": "people.pg"}}, policies=BOTH)
    assert cluster.apply().document["converged"]
    cluster.write("base.policy.yaml", "version: 1\n")
    cluster.declare(
        graphs={"more": {"schema": "people.pg"}}, policies={"base": {**BOTH["base"], "applies_to": ["more"]}}
    )
    assert made_of(cluster.apply())["policy.base"] == "applied"
    for graph in served(cluster):
        assert graph.policy is not None
        assert not graph.policy.decide("act-a", "read").allowed
    assert made_of(cluster.apply())["policy.base"] == "deferred"
    assert cluster.apply().document["state_written"] is False
    assert cluster.approve("graph.people").is_ok
    assert cluster.apply().document["converged"]
    assert cluster.state()["applied_revision"]["resources"]["policy.base"]["applies_to"] == ["more"]


def test_a_policy_under_another_name_takes_over_from_one_that_still_guards_what_is_to_go(
    applied_cluster: Cluster,
) -> None:
    cluster = applied_cluster
    cluster.declare(graphs={**CONFIG["graphs"], "more": {"schema": "people.pg"}}, policies=BOTH)
    assert cluster.apply().document["converged"]
    cluster.write("strict.policy.yaml", "version: 1\n")
    new = {"strict": {"file": "strict.policy.yaml", "applies_to": ["more"]}}
    cluster.declare(graphs={"more": {"schema": "people.pg"}}, policies=new)
    made = made_of(cluster.apply())
    assert (made["policy.base"], made["policy.strict"]) == ("deferred", "applied")
    allowed = {each.id: each.policy and each.policy.decide("act-a", "read").allowed for each in served(cluster)}
    assert allowed == {"more": False, "people": True}
    assert cluster.apply().document["state_written"] is False
    assert cluster.approve("graph.people").is_ok
    assert cluster.apply().document["converged"]
    assert set(cluster.state()["applied_revision"]["resources"]) == {"graph.more", "schema.more", "policy.strict"}


def served(cluster: Cluster) -> tuple[ServedGraph, ...]:
    """What a server would serve, all of it whole."""
    graphs = load_applied(cluster.folder).graphs
    assert [each.quarantine for each in graphs] == [None] * len(graphs)
    return graphs


def test_a_word_given_for_something_else_does_not_count(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    assert codes(cluster.approve("graph.people")) == {"approval_not_required"}
    cluster.declare(**EMPTY)
    assert cluster.approve("graph.people").is_ok
    cluster.declare(graphs={"other": {"schema": "people.pg"}}, policies={})
    assert codes(cluster.plan()) >= {"approval_stale", "approval_required"}
    cluster.apply()
    with graph(cluster) as opened:
        assert opened.schema_text() == SCHEMA


def test_a_word_is_good_for_one_deletion(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.declare(**EMPTY)
    assert cluster.approve("graph.people").is_ok
    assert cluster.approve("graph.people").is_ok  # said twice, it is still one word
    assert cluster.apply().document["converged"]
    cluster.declare()
    assert cluster.apply().document["converged"]
    cluster.declare(**EMPTY)
    assert made_of(cluster.apply())["graph.people"] == "blocked"


def test_an_approval_that_the_ledger_knows_as_used_is_used_whatever_its_file_says(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.declare(**EMPTY)
    cluster.approve("graph.people")
    (file,) = cluster.files("approvals")
    unused = file.read_bytes()
    assert cluster.apply().document["converged"]
    file.write_bytes(unused)
    cluster.declare()
    cluster.apply()
    cluster.declare(**EMPTY)
    assert made_of(cluster.apply())["graph.people"] == "blocked"


def test_a_stored_text_that_is_lost_or_damaged_is_said_and_put_again(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    query, policy = cluster.files("resources/query")[0], cluster.files("resources/policy")[0]
    whole = (query.read_bytes(), policy.read_bytes())
    query.unlink()
    policy.write_bytes(b"version: 1\n")
    told = cluster.status()
    assert not told.is_ok
    assert codes(told) == {"catalog_payload_missing", "catalog_payload_mismatch"}
    assert told.document["resource_statuses"]["query.people.find"]["status"] == "error"
    assert codes(cluster.refresh(), "warning") == codes(told)
    assert statuses(cluster)["policy.base"] == "drifted"
    assert made_of(cluster.apply()) == {"query.people.find": "applied", "policy.base": "applied"}
    assert (query.read_bytes(), policy.read_bytes()) == whole
    assert cluster.status().is_ok


def test_a_schema_that_was_changed_past_the_cluster_is_seen_and_set_right(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    with graph(cluster) as opened:
        opened.schema_apply(SCHEMA.replace("}", " nick: String? }"))
    seen = cluster.refresh()
    assert codes(seen) == {"conflicting_graph_manifest_observation"}
    assert seen.document["resource_statuses"]["schema.people"]["status"] == "drifted"
    assert made_of(cluster.apply()) == {"graph.people": "derived", "schema.people": "applied"}
    with graph(cluster) as opened:
        assert opened.schema_text() == SCHEMA
    assert codes(cluster.refresh()) == set()


def test_a_graph_that_is_gone_is_seen_to_be_and_made_anew(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    shutil.rmtree(cluster.folder / "graphs" / "people.omni")
    assert codes(cluster.refresh()) == {"graph_observation_error"}
    outcome = cluster.apply()
    assert made_of(outcome) == {"graph.people": "applied", "schema.people": "applied"}
    assert outcome.document["converged"]


def test_graphs_that_are_there_already_are_taken_in_by_an_import(cluster: Cluster) -> None:
    (cluster.folder / "graphs").mkdir()
    omnigraph.init(str(cluster.folder / "graphs" / "people.omni"), SCHEMA).close()
    assert set(cluster.begin().document["resource_digests"]) == {"graph.people", "schema.people"}
    assert made_of(cluster.apply()) == {
        "graph.people": "derived",
        "query.people.find": "applied",
        "policy.base": "applied",
    }
    assert codes(cluster.begin()) == {"state_already_exists"}


def test_a_graph_that_is_there_already_with_the_declared_schema_is_taken_as_made(cluster: Cluster) -> None:
    cluster.begin()
    (cluster.folder / "graphs").mkdir()
    omnigraph.init(str(cluster.folder / "graphs" / "people.omni"), SCHEMA).close()
    outcome = cluster.apply()
    assert codes(outcome) == {"graph_create_skipped"}
    assert outcome.document["converged"]


def test_nothing_is_deleted_without_an_approval_even_if_the_plan_were_wrong(
    applied_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = applied_cluster
    cluster.declare(**EMPTY)
    monkeypatch.setattr("omnigraph.cluster.changes._delete_change", _gone_without_asking)
    outcome = cluster.apply()
    assert codes(outcome, "error") == {"apply_approval_invariant_violation"}
    with graph(cluster) as opened:
        assert opened.schema_text() == SCHEMA
    assert "graph.people" in cluster.state()["applied_revision"]["resources"]
    assert cluster.state()["applied_revision"]["resources"]["policy.base"]["applies_to"] == ["people"]


def _gone_without_asking(address: str, entry: dict[str, str], approved: object) -> Change:
    """A planted bug."""
    parsed = addresses.parse(address)
    assert parsed is not None
    return Change(parsed, Operation.DELETE, before=entry["digest"])


def test_a_graph_that_is_in_the_way_is_never_taken_for_the_declared_one(cluster: Cluster) -> None:
    cluster.begin()
    (cluster.folder / "graphs").mkdir()
    other = "node Other { name: String @key }\n"
    omnigraph.init(str(cluster.folder / "graphs" / "people.omni"), other).close()
    outcome = cluster.apply()
    assert "graph_create_failed" in codes(outcome, "error")
    assert made_of(outcome) == {
        "graph.people": "blocked",
        "schema.people": "blocked",
        "query.people.find": "blocked",
        "policy.base": "applied",
    }
    with graph(cluster) as opened:
        assert opened.schema_text() == other


def test_several_graphs_stand_each_for_itself(cluster: Cluster) -> None:
    cluster.write("other.pg", "node Other { name: String @key }\n")
    cluster.declare(graphs={**CONFIG["graphs"], "other": {"schema": "other.pg"}})
    cluster.begin()
    assert cluster.apply().document["converged"]
    with graph(cluster, "other") as other, graph(cluster) as people:
        assert other.schema_text() != people.schema_text()


def test_a_configuration_with_mistakes_changes_nothing(applied_cluster: Cluster) -> None:
    before = applied_cluster.state()
    applied_cluster.write("people.gq", "query {")
    for command in (applied_cluster.plan, applied_cluster.apply, applied_cluster.refresh):
        outcome = command()
        assert not outcome.is_ok
        assert outcome.summary[0].endswith(" failed")
    assert applied_cluster.state() == before


def test_a_cluster_may_lie_elsewhere_than_its_configuration(cluster: Cluster) -> None:
    cluster.declare(storage="elsewhere")
    cluster.begin()
    assert cluster.apply().document["converged"]
    assert (cluster.folder / "elsewhere" / "__cluster" / "state.json").exists()
    assert not (cluster.folder / "__cluster").exists()


def test_a_graph_that_could_not_be_deleted_keeps_what_guards_and_feeds_it(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    cluster.declare(graphs={**CONFIG["graphs"], "more": {"schema": "people.pg"}}, policies=BOTH)
    assert cluster.apply().document["converged"]
    cluster.declare(
        graphs={"more": {"schema": "people.pg"}}, policies={"base": {**BOTH["base"], "applies_to": ["more"]}}
    )
    assert cluster.approve("graph.people").is_ok
    faults = Faults()
    faults.arm(Fault.NO_SPACE, kind=RequestKind.DELETE_PREFIX)
    stores = cluster.environment.stores
    failing = replace(cluster.environment, stores=lambda uri: FaultyStore(stores(uri), faults))
    outcome = apply(cluster.folder, environment=failing)
    assert codes(outcome, "error") == {"graph_delete_failed"}
    made = made_of(outcome)
    assert (made["graph.people"], made["policy.base"], made["query.people.find"]) == ("blocked", "deferred", "deferred")
    assert cluster.state()["applied_revision"]["resources"]["policy.base"]["applies_to"] == ["more", "people"]
    assert cluster.apply().document["converged"]
    assert cluster.state()["applied_revision"]["resources"]["policy.base"]["applies_to"] == ["more"]
    assert len(cluster.state()["approval_records"]) == 1


def test_several_graphs_that_stay_for_several_reasons_all_keep_their_policy(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    graphs = {name: {"schema": "people.pg"} for name in ("aa", "bb", "cc")}
    guard = {"guard": {"file": "base.policy.yaml", "applies_to": [*graphs]}}
    cluster.declare(graphs=graphs, policies=guard)
    assert cluster.apply().document["deferred_count"] > 0  # the graph of before waits for somebody's word
    cluster.declare(graphs={}, policies={})
    for name in ("bb", "cc"):
        assert cluster.approve(f"graph.{name}").is_ok
    faults = Faults()
    faults.arm(Fault.NO_SPACE, times=2, path_part="__cluster/recoveries")
    stores = cluster.environment.stores
    failing = replace(cluster.environment, stores=lambda uri: FaultyStore(stores(uri), faults))
    outcome = apply(cluster.folder, environment=failing)
    assert codes(outcome, "error") == {"recovery_sidecar_write_error"}
    assert {each.id for each in served(cluster) if each.policy is not None} == {"aa", "bb", "cc", "people"}
    outcome = cluster.apply()
    assert {each.id for each in served(cluster) if each.policy is not None} == {"aa", "people"}
    assert cluster.state()["applied_revision"]["resources"]["policy.guard"]["applies_to"] == ["aa"]
