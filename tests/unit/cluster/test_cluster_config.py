import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.small_cluster import Cluster, codes

from omnigraph.cluster.config import read_text
from omnigraph.cluster.desired import validate
from omnigraph.cluster.diagnostics import Diagnostics


def said_of(text: str) -> list[tuple[str, str]]:
    said = Diagnostics()
    read_text(text, said)
    return [(each.code, each.path) for each in said]


def of(**members: object) -> str:
    return json.dumps({"version": 1, **members})


def graph(**members: object) -> dict[str, Any]:
    return {"graphs": {"g": {"schema": "g.pg", **members}}}


def provider(**members: object) -> dict[str, Any]:
    return {"providers": {"embedding": {"p": members}}}


def policy(*applies_to: str, **members: object) -> dict[str, Any]:
    return {"policies": {"p": {"file": "p.yaml", "applies_to": list(applies_to), **members}}}


def test_everything_a_configuration_can_say_is_read() -> None:
    said = Diagnostics()
    declared = read_text(
        """\
version: 1
metadata: { name: label }
storage: s3://bucket/prefix
state: { backend: cluster, lock: false }
providers:
  embedding:
    default: { kind: openai-compatible, base_url: "https://host/v1", model: m, api_key: "${KEY}" }
    offline: { kind: mock }
graphs:
  knowledge:
    schema: knowledge.pg
    queries: queries/
    embedding_provider: default
    external_blobs: { allow: [ { base: "s3://b/p/", scope: server_safe } ] }
  files: { schema: f.pg, queries: [a.gq, b.gq], embedding_provider: provider.embedding.offline }
  named: { schema: n.pg, queries: { find: { file: x.gq } } }
policies:
  base: { file: base.policy.yaml, applies_to: [knowledge, graph.files] }
  own: { file: own.policy.yaml, applies_to: [cluster] }
""",
        said,
    )
    assert list(said) == []
    assert declared is not None
    assert (declared.name, declared.storage, declared.uses_lock) == ("label", "s3://bucket/prefix", False)
    assert declared.providers["default"].api_key == "${KEY}"
    assert declared.graphs["knowledge"].queries.folder == "queries/"
    assert declared.graphs["knowledge"].external_blobs == {"allow": [{"base": "s3://b/p/", "scope": "server_safe"}]}
    assert declared.graphs["files"].queries.files == ("a.gq", "b.gq")
    assert declared.graphs["files"].embedding_provider == "offline"
    assert declared.graphs["named"].queries.named == {"find": "x.gq"}
    assert declared.policies["base"].applies_to == ("files", "knowledge")
    assert declared.policies["own"].is_for_cluster


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ("version: 1\n  x: [", "invalid_cluster_yaml", "cluster.yaml"),
        ("[]", "invalid_cluster_yaml", "cluster.yaml"),
        ("version: 1\nversion: 1\n", "duplicate_yaml_key", "cluster.yaml"),
        ("version: 1\ngraphs: { g: { schema: a }, g: { schema: b } }\n", "duplicate_yaml_key", "cluster.yaml"),
        ("version: 2\n", "unsupported_cluster_config_version", "version"),
        ("graphs: {}\n", "unsupported_cluster_config_version", "version"),
        (of(colour="blue"), "invalid_cluster_yaml", "colour"),
        (of(graphs=[]), "invalid_cluster_yaml", "graphs"),
        *(
            (of(**{key: {}}), "future_phase_field", key)
            for key in ("pipelines", "embeddings", "ui", "aliases", "bindings")
        ),
        (of(**graph(streaming=True)), "removed_streaming_declaration", "graphs.g.streaming"),
        (of(metadata={"name": " "}), "empty_metadata_name", "metadata.name"),
        (of(storage=""), "invalid_storage_root", "storage"),
        (of(storage="ftp://host"), "invalid_storage_root", "storage"),
        (of(storage="s3://key:secret@bucket/x"), "invalid_storage_root", "storage"),
        (of(state={"backend": "consul"}), "unsupported_state_backend", "state.backend"),
        (of(state={"lock": "yes"}), "invalid_cluster_yaml", "state.lock"),
        (of(graphs={"a/b": {"schema": "g.pg"}}), "invalid_resource_id", "graphs.a/b"),
        (of(graphs={"policies": {"schema": "g.pg"}}), "invalid_resource_id", "graphs.policies"),
        (of(graphs={"x" * 65: {"schema": "g.pg"}}), "invalid_resource_id", f"graphs.{'x' * 65}"),
        (of(graphs={"g": {}}), "invalid_cluster_yaml", "graphs.g.schema"),
        (of(**graph(queries={"../x": {"file": "a.gq"}})), "invalid_resource_id", "graphs.g.queries.../x"),
        (of(**graph(embedding_provider="p")), "dangling_embedding_provider_reference", "graphs.g.embedding_provider"),
        (of(**graph(embedding_provider="schema.g")), "wrong_kind_reference", "graphs.g.embedding_provider"),
        (
            of(**graph(external_blobs={"allow": [{"base": "s3://b"}]})),
            "invalid_external_blob_policy",
            "graphs.g.external_blobs",
        ),
        (
            of(**graph(external_blobs={"allow": [{"base": "file:///x/", "scope": "server_safe"}]})),
            "invalid_external_blob_base",
            "graphs.g.external_blobs",
        ),
        (of(**provider(kind="magic")), "invalid_embedding_provider", "providers.embedding.p.kind"),
        (
            of(**provider(kind="openai", api_key="sk-secret")),
            "embedding_api_key_inline",
            "providers.embedding.p.api_key",
        ),
        (of(**provider(kind="gemini")), "embedding_api_key_required", "providers.embedding.p.api_key"),
        (of(**graph(), **policy("h")), "dangling_graph_reference", "policies.p.applies_to"),
        (of(**graph(), **policy("g", "cluster")), "policy_mixed_binding_kinds", "policies.p.applies_to"),
        (of(**graph(), **policy()), "policy_missing_applies_to", "policies.p.applies_to"),
        (of(**graph(), **policy("policy.p")), "wrong_kind_reference", "policies.p.applies_to"),
        (of(policies={"..": {"file": "p", "applies_to": ["cluster"]}}), "invalid_resource_id", "policies..."),
        (
            of(policies={name: {"file": "p", "applies_to": ["cluster"]} for name in "ab"}),
            "duplicate_policy_binding",
            "policies.b",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_code_and_its_place(text: str, code: str, path: str) -> None:
    assert (code, path) in said_of(text)


def test_a_key_in_the_file_is_never_repeated_in_what_is_said() -> None:
    said = Diagnostics()
    read_text(of(**provider(kind="openai", api_key="sk-secret")), said)
    assert "sk-secret" not in "".join(map(str, said))


def test_all_that_is_wrong_is_said_at_once(cluster: Cluster) -> None:
    cluster.declare(colour="blue", graphs={"people": {"schema": "nowhere.pg", "queries": "nowhere/"}})
    outcome = cluster.validate()
    assert not outcome.is_ok
    assert codes(outcome) >= {"invalid_cluster_yaml", "schema_file_missing", "query_dir_unreadable"}
    assert outcome.summary == ("cluster config invalid",)


def test_a_folder_without_a_configuration_is_told_from_no_folder(tmp_path: Path) -> None:
    assert codes(validate(tmp_path / "nowhere")) == {"config_dir_not_found"}
    assert codes(validate(tmp_path)) == {"cluster_config_read_error"}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"people.pg": "node {"}, "schema_parse_error"),
        ({"people.pg": "node Person { name: String @key }\nnode Person { name: String }\n"}, "schema_catalog_error"),
        ({"people.gq": "query {"}, "query_parse_error"),
        ({"people.gq": "query q() { match { $p: Persn } return { $p.name } }"}, "query_typecheck_error"),
        ({"people.gq": "query q() { match { $p: Person } return { $p.name } }\n" * 2}, "duplicate_query_name"),
        ({"base.policy.yaml": "version: 2\n"}, "policy_invalid"),
    ],
)
def test_files_that_are_named_are_checked_too(cluster: Cluster, files: dict[str, str], code: str) -> None:
    for name, text in files.items():
        cluster.write(name, text)
    assert code in codes(cluster.validate(), "error")


def test_a_policy_for_the_cluster_must_be_about_the_server(cluster: Cluster) -> None:
    cluster.declare(policies={"base": {"file": "base.policy.yaml", "applies_to": ["cluster"]}})
    assert codes(cluster.validate()) == {"policy_invalid"}


def test_queries_without_a_schema_are_said_to_be_unchecked(cluster: Cluster) -> None:
    (cluster.folder / "people.pg").unlink()
    assert codes(cluster.validate(), "warning") == {"query_typecheck_skipped"}


def test_a_folder_of_queries_gives_every_query_of_its_files_and_none_of_folders_below(cluster: Cluster) -> None:
    (cluster.folder / "q" / "below").mkdir(parents=True)
    cluster.write("q/b.gq", "query two() { match { $p: Person } return { $p.name } }")
    cluster.write("q/a.gq", "query one() { match { $p: Person } return { $p.name } }\n")
    cluster.write("q/notes.txt", "not a query")
    cluster.write("q/below/c.gq", "query three() { match { $p: Person } return { $p.name } }")
    cluster.declare(graphs={"people": {"schema": "people.pg", "queries": "q/"}})
    found = cluster.validate().document["resources"]
    assert [(each["address"], each["path"]) for each in found if each["kind"] == "query"] == [
        ("query.people.one", "q/a.gq"),
        ("query.people.two", "q/b.gq"),
    ]


def test_an_empty_folder_of_queries_is_a_mistake(cluster: Cluster) -> None:
    (cluster.folder / "q").mkdir()
    cluster.declare(graphs={"people": {"schema": "people.pg", "queries": "q"}})
    assert codes(cluster.validate()) == {"query_dir_empty"}


def test_a_query_that_is_named_must_be_in_its_file(cluster: Cluster) -> None:
    cluster.declare(graphs={"people": {"schema": "people.pg", "queries": {"lost": {"file": "people.gq"}}}})
    assert codes(cluster.validate()) == {"query_key_mismatch"}
    cluster.declare(graphs={"people": {"schema": "people.pg", "queries": {"find": {"file": "nowhere.gq"}}}})
    assert codes(cluster.validate()) == {"query_file_missing"}


def test_blobs_that_may_lie_nowhere_are_worth_a_word(cluster: Cluster) -> None:
    cluster.declare(graphs={"people": {"schema": "people.pg", "external_blobs": {"allow": []}}})
    outcome = cluster.validate()
    assert outcome.is_ok
    assert codes(outcome) == {"external_blob_ingress_default_deny"}


@pytest.mark.parametrize("escape", ["../people.pg", "/etc/passwd", "link.pg", "q/../../people.pg", "a\x00b"])
def test_no_file_is_read_from_outside_the_folder(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, escape: str
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "people.pg"
    outside.write_text("node Person { name: String @key }\n")
    (cluster.folder / "link.pg").symlink_to(outside)
    (cluster.folder / "q").mkdir()
    (cluster.folder.parent / "people.pg").write_text("node Person { name: String @key }\n")
    for member in ("schema", "queries", "policy"):
        graph = {"schema": "people.pg"} | (
            {} if member == "policy" else {member: [escape] if member == "queries" else escape}
        )
        policies = {"p": {"file": escape, "applies_to": ["people"]}} if member == "policy" else {}
        cluster.declare(graphs={"people": graph}, policies=policies)
        outcome = cluster.validate()
        assert not outcome.is_ok
        assert "leads out of the folder" in str(outcome.lines())


def test_the_digest_of_a_configuration_is_that_of_what_it_means(cluster: Cluster) -> None:
    first = cluster.plan().document["desired_revision"]
    text = (cluster.folder / "cluster.yaml").read_text()
    (cluster.folder / "cluster.yaml").write_text(f"# a comment\n{text}")
    assert cluster.plan().document["desired_revision"] == first
    cluster.write("people.gq", (cluster.folder / "people.gq").read_text() + "// changed\n")
    assert cluster.plan().document["desired_revision"] != first
