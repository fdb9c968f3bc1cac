"""Queries on the command line at earlier states, by every name a state has."""

import json

import pytest
from tests.support.command_line import Run

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
    assert names(run, library, "--number", str(newest["graph_manifest_version"])) == ["Le Guin"]


def test_an_export_and_a_diff_begin_at_a_number_or_a_time(run: Run, library: str) -> None:
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Le Guin" } }').code == 0
    [newest, *_] = json.loads(run("commit", "list", library, "--json").out)["commits"]
    assert run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "Butler" } }').code == 0

    number = newest["graph_manifest_version"]
    exported = run("export", library, "--type", "Author", "--number", str(number))
    assert [json.loads(line)["data"]["name"] for line in exported.out.splitlines()] == ["Le Guin"]
    differing = json.loads(run("diff", f"main@{number}", "main@2999-01-01", "--uri", library, "--json").out)
    assert [each["id"] for each in differing["changes"]] == ["Butler"]


@pytest.mark.parametrize(
    ("where", "code", "told"),
    [
        (("--at", "1999-01-01"), 1, "1999-01-01"),
        (("--tag", "nobody"), 1, "tag 'nobody' not found"),
        (("--tag", "a", "--snapshot", "b"), 2, "not allowed with argument"),
        (("--number", "99"), 1, "99"),
        (("--number", "1", "--at", "2999-01-01"), 1, "number"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_state_that_is_not_there_is_refused(
    run: Run, library: str, where: tuple[str, ...], code: int, told: str
) -> None:
    ended = run("query", "--store", library, "-e", AUTHORS, *where)
    assert (ended.code, ended.out) == (code, "")
    assert told in ended.err
