"""What operators see: commits with message, kind and time; errors as JSON; one way to name a graph."""

import json
from datetime import UTC, datetime

import pytest
from tests.support.command_line import Ended, Run

INSERT_AUTHOR = 'query add() { insert Author { name: "Le Guin" } }'


def answer(ended: Ended) -> str:
    """Return what a run printed that ended well."""
    assert ended.code == 0, ended.err
    return ended.out


def test_with_json_what_goes_wrong_is_one_line_of_json_on_stderr_with_its_code(run: Run, library: str) -> None:
    ended = run("query", "--store", library, "-e", "nonsense", "--json")
    assert (ended.code, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    document = json.loads(line)
    assert (document["code"], document["at"]) == ("parse_error", library)
    assert document["error"].startswith("parse error")

    missing = run("commit", "list", library, "--branch", "nowhere", "--json")
    assert json.loads(missing.err)["code"] == "branch_not_found"
    assert json.loads(missing.err)["try"] == "list the branches: omnigraph branch list"

    usage = run("commit", "list", library, "--no-such-flag", "--json")
    assert (usage.code, json.loads(usage.err)["code"]) == (2, "usage")


def test_commits_show_message_kind_and_a_time_that_people_can_read(run: Run, library: str) -> None:
    answer(run("mutate", "--store", library, "-e", INSERT_AUTHOR, "--message", "first author", "--as", "ann"))
    [newest, *_] = json.loads(answer(run("commit", "list", library, "--json")))["commits"]
    assert (newest["message"], newest["kind"], newest["actor_id"]) == ("first author", "mutation", "ann")
    assert newest["created"] == datetime.fromtimestamp(newest["created_at"] // 1_000_000, UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )

    listed = answer(run("commit", "list", library, "--limit", "1"))
    assert f'actor=ann kind=mutation time={newest["created"]} message="first author"' in listed
    shown = answer(run("commit", "show", newest["graph_commit_id"], "--uri", library))
    assert f"created: {newest['created']}\nkind: mutation\nmessage: first author\n" in shown
    changes = answer(run("commit", "changes", newest["graph_commit_id"], "--uri", library))
    assert f"kind: mutation\nmessage: first author\ntime: {newest['created']}\n" in changes


def test_log_without_an_entity_is_the_log_of_commits(run: Run, library: str) -> None:
    answer(run("mutate", "--store", library, "-e", INSERT_AUTHOR, "--message", "first author", "--as", "ann"))
    heading, _, newest, *_ = answer(run("log", "--store", library)).splitlines()
    assert heading.split() == ["commit", "|", "time", "|", "actor", "|", "kind", "|", "message"]
    assert [part.strip() for part in newest.split("|")][2:] == ["ann", "mutation", "first author"]
    documents = json.loads(answer(run("log", "--store", library, "--json", "--limit", "1")))
    assert [commit["message"] for commit in documents["commits"]] == ["first author"]

    only_type = run("log", "Book", "--store", library)
    assert only_type.code == 2
    assert "TYPE and ID" in only_type.err


def test_a_variable_names_the_graph_where_no_flag_does(run: Run, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", library)
    assert answer(run("branch", "list")) == "main\n"
    assert answer(run("log", "--limit", "1")).count("\n") == 3
    assert run("branch", "list", "--store", f"{library}-elsewhere").code == 1
    refused = run("branch", "list", "--graph", "other")
    assert "OMNIGRAPH_STORE is already a single graph" in refused.err
