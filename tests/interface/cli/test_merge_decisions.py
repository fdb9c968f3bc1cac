"""`branch merge`: conflicts with what each side has, and a file of decisions to be made."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run

SCHEMA = """
node P { name: String @key  role: String?  note: String? }
edge Pair: P -> P { w: I32?  @key(src, dst) }
"""


@pytest.fixture
def graph(run: Run, tmp_path: Path) -> str:
    address, schema = str(tmp_path / "graph"), tmp_path / "graph.pg"
    schema.write_text(SCHEMA)
    assert run("init", address, "--schema", str(schema)).code == 0

    def change(branch: str, text: str) -> None:
        ended = run("mutate", "--store", address, "--branch", branch, "-e", f"query q() {{ {text} }}")
        assert ended.code == 0, ended.err

    change("main", 'insert P { name: "a", role: "r" } insert P { name: "b" } insert P { name: "c" }')
    assert run("branch", "create", "side", "--store", address, "--quiet").code == 0
    for branch, weight in (("side", 1), ("main", 2)):
        change(branch, f'insert Pair {{ from: "a", to: "b", w: {weight} }}')
        change(branch, f'update P set {{ role: "{branch}" }} where name = "a"')
    change("side", 'update P set { note: "kept" } where name = "a"')
    change("side", 'delete P where name = "c"')
    change("main", 'update P set { note: "here" } where name = "c"')
    return address


def merge(run: Run, graph: str, *words: str) -> tuple[int, str, str]:
    ended = run("branch", "merge", "side", "--store", graph, "--quiet", *words)
    return ended.code, ended.out, ended.err


def test_conflicts_show_what_each_side_has(run: Run, graph: str) -> None:
    code, out, _ = merge(run, graph, "--preview", "--by", "property")
    assert (code, out.splitlines()[1:]) == (
        1,
        [
            'conflict: divergent insert for id \'["a","b"]\' in w (divergent_insert, edge:Pair)',
            "  missing on: base",
            "  w: source 1, target 2",
            "conflict: divergent update for id 'a' in role (divergent_update, node:P)",
            '  note: base null, source "kept", target null',
            '  role: base "r", source "side", target "main"',
            "conflict: delete/update conflict for id 'c' (delete_vs_update, node:P)",
            "  missing on: source",
            '  note: base null, target "here"',
        ],
    )
    _, _, err = merge(run, graph)
    assert '  role: base "r", source "side", target "main"' in err


@pytest.mark.parametrize("words", [[], ["--preview"]])
def test_a_file_of_decisions_is_written_edited_and_given_back(
    run: Run, graph: str, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "decisions.json"
    code, _, err = merge(run, graph, "--by", "property", "--write-resolutions", str(file), *words)
    assert code == 1
    assert f'wrote 3 conflicts to {file}: set each "decision", then merge with --resolve {file}' in err
    document = json.loads(file.read_text())
    [pair], [first, second] = document["edge:Pair"], document["node:P"]
    assert (pair["key"], pair["decision"]) == ({"from": "a", "to": "b"}, {"$properties": {"w": "undecided"}})
    assert (first["id"], first["decision"]) == ("a", {"$properties": {"role": "undecided"}})
    assert (first["source"]["note"], first["target"]["note"]) == ("kept", None)
    assert (second["id"], second["decision"], second["source"]) == ("c", "undecided", None)

    code, _, err = merge(run, graph, "--by", "property", "--resolve", str(file))
    assert (code, err.count("conflict: ")) == (1, 3)  # nothing was decided yet
    pair["decision"]["$properties"]["w"] = {"value": 7}
    first["decision"]["$properties"]["role"] = "source"
    second["decision"] = None
    file.write_text(json.dumps(document))
    code, out, err = merge(run, graph, "--by", "property", "--resolve", str(file))
    assert (code, out) == (0, "merged side into main: merged\n"), err
    records = [json.loads(line) for line in run("export", graph, "--quiet").out.splitlines()]
    people = {each["data"]["name"]: each["data"] for each in records if "type" in each}
    assert (sorted(people), people["a"]["role"], people["a"]["note"]) == (["a", "b"], "side", "kept")
    assert [each["data"]["w"] for each in records if "edge" in each] == [7]


def test_a_file_that_is_there_is_not_written_over(run: Run, graph: str, tmp_path: Path) -> None:
    file = tmp_path / "decisions.json"
    file.write_text("mine")
    code, _, err = merge(run, graph, "--write-resolutions", str(file))
    assert (code, file.read_text()) == (1, "mine")
    assert "exists already; name a new file for the decisions" in err


def test_the_base_of_a_merge_can_be_named(run: Run, graph: str) -> None:
    listed = json.loads(run("commit", "list", graph, "--json").out)["commits"]
    code, out, _ = merge(run, graph, "--base", listed[-1]["graph_commit_id"], "--prefer", "target", "--preview")
    assert (code, out.splitlines()[0]) == (0, "would merge side into main: merged")
    code, _, err = merge(run, graph, "--base", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert code == 1
    assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" in err


def test_a_merge_tells_what_becomes_of_the_schema(run: Run, graph: str, tmp_path: Path) -> None:
    schema = tmp_path / "less.pg"
    schema.write_text(SCHEMA.replace("note: String?", ""))
    words = ["--schema", str(schema), "--branch", "side", "--allow-data-loss", "--quiet"]
    ended = run("schema", "apply", graph, *words)
    assert ended.code == 0, ended.err
    dropped = "drop property 'P.note' of node 'P' (soft mode): loses 1 value"
    _, out, _ = merge(run, graph, "--prefer", "source", "--preview")
    assert out.splitlines()[1] == f"schema: {dropped}"
    _, out, _ = merge(run, graph, "--prefer", "source", "--json")
    [step] = json.loads(out)["schema_steps"]
    assert (step["kind"], step["values_lost"]) == ("drop_property", 1)
