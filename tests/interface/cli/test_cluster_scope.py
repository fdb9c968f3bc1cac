"""Graphs, queries and policies of a cluster, by the ways an operator can name it."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.support.small_cluster import CONFIG, Cluster


@pytest.fixture
def brain(tmp_path: Path) -> Cluster:
    """A cluster of two graphs, applied."""
    folder = tmp_path / "brain"
    folder.mkdir()
    cluster = Cluster(folder)
    cluster.declare(graphs={**CONFIG["graphs"], "other": {"schema": "people.pg"}})
    assert cluster.begin().is_ok
    assert cluster.apply().document["converged"]
    return cluster


@pytest.fixture
def configured(brain: Cluster, operator_home: Path) -> None:
    """An operator who gave the cluster a name."""
    document = {
        "operator": {"actor": "act-me"},
        "clusters": {"brain": {"root": str(brain.folder)}},
        "profiles": {"work": {"cluster": "brain", "default_graph": "people"}, "home": {"store": "x"}},
    }
    (operator_home / "config.yaml").write_text(json.dumps(document))


@pytest.mark.usefixtures("configured")
def test_a_cluster_is_named_by_its_folder_its_configured_name_and_a_profile(run: Run, brain: Cluster) -> None:
    for words in (
        ("--cluster", str(brain.folder), "--graph", "people"),
        ("--cluster", "brain", "--graph", "people"),
        ("--profile", "work"),
    ):
        listed = run("queries", "list", *words)
        assert (listed.code, listed.out) == (0, "read  find($n: String) [mcp: find]\n")
        explained = run("policy", "explain", *words, "--actor", "act-a", "--action", "read")
        assert explained.out.startswith("decision: allow\n")
        shown = run("optimize", *words, "--json", "--quiet")
        assert json.loads(shown.out)["uri"] == str(brain.folder / "graphs" / "people.omni")


@pytest.mark.usefixtures("configured")
def test_where_there_are_several_graphs_one_must_be_named(run: Run) -> None:
    for words in (("optimize",), ("queries", "list"), ("cleanup", "--keep", "1"), ("lint", "--query", "x")):
        ended = run(*words, "--cluster", "brain")
        assert ended.code == 1
        assert "the cluster has other, people; give --graph ID" in ended.err
    ended = run("optimize", "--cluster", "brain", "--graph", "nowhere")
    assert (ended.code, ended.err.splitlines()[0]) == (
        1,
        "error: graph 'nowhere' not found; the cluster has other, people",
    )


@pytest.mark.usefixtures("configured")
def test_a_profile_that_names_no_cluster_does_not_do(run: Run) -> None:
    ended = run("policy", "validate", "--profile", "home")
    assert ended.code == 1
    assert "needs --cluster DIR|URI" in ended.err


@pytest.mark.usefixtures("configured")
def test_whoever_applies_and_approves_is_the_flag_else_the_operator(run: Run, brain: Cluster) -> None:
    folder = str(brain.folder)
    assert json.loads(run("cluster", "apply", "--config", folder, "--json").out)["actor"] == "act-me"
    assert json.loads(run("cluster", "apply", "--config", folder, "--json", "--as", "x").out)["actor"] == "x"
    brain.declare(graphs=CONFIG["graphs"])
    given = run("cluster", "approve", "graph.other", "--config", folder, "--json")
    assert json.loads(given.out)["approved_by"] == "act-me"


def test_every_answer_for_programs_is_the_one_for_people_and_the_code_says_whether_it_is_ok(
    run: Run, brain: Cluster
) -> None:
    brain.write("people.gq", "query {")
    for words in (
        ("validate",),
        ("plan",),
        ("apply",),
        ("refresh",),
        ("import",),
        ("approve", "graph.people", "--as", "x"),
    ):
        told = run("cluster", *words, "--config", str(brain.folder))
        shown = run("cluster", *words, "--config", str(brain.folder), "--json")
        document = json.loads(shown.out)
        assert (told.code, shown.code, document["ok"]) == (1, 1, False)
        assert {each["code"] for each in document["diagnostics"]} == {"query_parse_error"}
        assert "\nERROR query_parse_error graphs.people.queries: people.gq: " in told.out


def test_a_stored_query_that_does_not_fit_is_told_by_name(run: Run, brain: Cluster) -> None:
    brain.write("people.gq", "query q() { match { $p: Persn } return { $p.name } }")
    ended = run("queries", "validate", "--cluster", str(brain.folder), "--graph", "people")
    assert ended.code == 1
    assert ended.out.startswith("ERROR  query 'q': type error: ")
    shown = run("queries", "validate", "--cluster", str(brain.folder), "--graph", "people", "--json")
    assert json.loads(shown.out)["ok"] is False


def test_a_policy_with_a_mistake_is_told_with_its_place(run: Run, brain: Cluster) -> None:
    brain.write("base.policy.yaml", "version: 1\nrulez: []\n")
    ended = run("policy", "validate", "--cluster", str(brain.folder))
    assert ended.code == 1
    assert "error: the policy has the unknown key 'rulez' (line 2, column 1)" in ended.err
