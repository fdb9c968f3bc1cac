"""`--prune-previous`: a write on the command line that shows what came before it no more."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run

INSERT = 'query q() { insert Author { name: "Butler" } }'


def commits(run: Run, library: str) -> list[str]:
    shown = run("commit", "list", library, "--json")
    assert shown.code == 0, shown.err
    return [each["graph_commit_id"] for each in json.loads(shown.out)["commits"]]


@pytest.mark.parametrize("command", ["mutate", "load", "branch merge", "schema apply", "revert"])
def test_a_write_can_prune_what_came_before_it(run: Run, library: str, tmp_path: Path, command: str) -> None:
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Le Guin" } }').code == 0
    assert run("branch", "create", "side", "--uri", library).code == 0
    assert run("mutate", "--store", library, "--branch", "side", "-e", INSERT).code == 0
    data, schema = tmp_path / "more.jsonl", tmp_path / "more.pg"
    data.write_text('{"type": "Author", "data": {"name": "Lem"}}\n')
    schema.write_text((tmp_path / "library.pg").read_text() + "node Shelf { name: String @key }\n")
    before = commits(run, library)
    words = {
        "mutate": ("--store", library, "-e", INSERT),
        "load": (library, "--data", str(data), "--mode", "append", "--engine", "local"),
        "branch merge": ("side", "--uri", library),
        "schema apply": (library, "--schema", str(schema)),
        "revert": (before[0], "--uri", library),
    }
    done = run(*command.split(), *words[command], "--prune-previous")
    assert done.code == 0, done.err
    [left] = commits(run, library)
    assert left not in before


def test_commits_are_pruned_by_their_names(run: Run, library: str) -> None:
    for name in ("Lem", "Butler"):
        assert run("mutate", "--store", library, "-e", f'query q() {{ insert Author {{ name: "{name}" }} }}').code == 0
    deleting = 'query q() { delete Author where name = "Lem" }'
    assert run("mutate", "--store", library, "-e", deleting).code == 0
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Dick" } }').code == 0
    last, gone, *named = commits(run, library)[:4]
    done = run("prune", library, *(word for each in (gone, *named) for word in ("--commit", each)), "--now", "--yes")
    assert done.code == 0, done.err
    assert "to delete the files that only pruned commits need: omnigraph sweep" in done.out
    assert run("sweep", library, "--older-than", "0s", "--yes").code == 0
    left = commits(run, library)
    assert last in left
    assert not {gone, *named} & {*left}
    assert not [path for path in Path(library).rglob("*") if path.is_file() and b"Lem" in path.read_bytes()]
