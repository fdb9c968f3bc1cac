"""Queries on the command line at earlier states, by every name a state has."""

import json

import pytest

from omnigraph.testing.command_line import Run

AUTHORS = "query q() { match { $a: Author } return { $a.name as name } }"


def names(run: Run, library: str, *where: str) -> list[str]:
    shown = run("query", "--store", library, "-e", AUTHORS, "--json", *where)
    assert shown.code == 0, shown.err
    return sorted(row["name"] for row in json.loads(shown.out)["rows"])


def test_a_query_is_answered_at_a_commit_a_tag_and_a_time(run: Run, library: str) -> None:
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Le Guin" } }').code == 0
    assert run("tag", "create", "first", "--uri", library).code == 0
    [newest, *_] = json.loads(run("commit", "list", library, "--json").out)["commits"]
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Butler" } }').code == 0

    assert names(run, library) == ["Butler", "Le Guin"]
    assert names(run, library, "--snapshot", newest["graph_commit_id"]) == ["Le Guin"]
    assert names(run, library, "--tag", "first") == ["Le Guin"]
    assert names(run, library, "--at", "2999-01-01") == ["Butler", "Le Guin"]


@pytest.mark.parametrize("where", [("--at", "1999-01-01"), ("--tag", "nobody"), ("--tag", "a", "--snapshot", "b")])
def test_a_state_that_is_not_there_is_refused(run: Run, library: str, where: tuple[str, ...]) -> None:
    assert run("query", "--store", library, "-e", AUTHORS, *where).code != 0
