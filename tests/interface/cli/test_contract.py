"""The commands, flags and exit codes that scripts rely on, written down as a table and checked against the program."""

import argparse
from pathlib import Path

import pytest
from tests.support.command_line import Run

from omnigraph.cli.parsing import command_parser
from omnigraph.cli.specs import ALIASES, BY_NAME, COMMANDS, DEPRECATED

# One line per command: its words; its arguments, `[X]` where one may be left out; its flags, `!` after one that is
# required, `*` after one that may be repeated, `a^b` where only one of two may be given.
TABLE = """
init            | URI                | --schema! --force
load            | [URI]              | --data! --mode! --branch --from --json
ingest          | [URI]              | --data! --mode --branch --from --json
query           | [NAME]             | --query^--query-string --params^--params-file --branch^--snapshot --format^--json
mutate          | [NAME]             | --query^--query-string --params^--params-file --branch --if-commit --json
branch create   | NAME               | --uri --from --json
branch list     |                    | --uri --json
branch delete   | NAME               | --uri --json
branch merge    | SOURCE             | --uri --into --delete-branch --json
snapshot        | [URI]              | --branch --json
export          | [URI]              | --branch --type* --jsonl
blob get        | ENTITY TYPE ID PROPERTY | --branch^--snapshot --offset --length --out
blob stat       | ENTITY TYPE ID PROPERTY | --branch^--snapshot --json
commit list     | [URI]              | --branch --json
commit show     | ID                 | --uri --json
commit changes  | ID                 | --uri --limit --page-token --kind* --type* --op* --json
changes poll    |                    | --uri --branch --cursor^--start --limit --kind* --type* --op* --json
changes baseline|                    | --out! --uri --branch --kind* --type* --op* --json
schema plan     | [URI]              | --schema! --allow-data-loss --json
schema apply    | [URI]              | --schema! --allow-data-loss --json
schema show     | [URI]              | --json
lint            | [URI]              | --query! --schema --json
optimize        | [URI]              | --json
repair          | [URI]              | --clock --confirm --force --json
cleanup         | [URI]              | --keep --older-than --confirm --json
queries validate|                    | --json
queries list    |                    | --json
policy validate |                    |
policy test     |                    | --tests!
policy explain  |                    | --actor! --action! --branch --target-branch
cluster validate|                    | --config --json
cluster plan    |                    | --config --json
cluster apply   |                    | --config --json
cluster status  |                    | --config --json
cluster refresh |                    | --config --json
cluster import  |                    | --config --json
cluster approve | RESOURCE           | --config --json
cluster force-unlock | LOCK_ID       | --config --json
graphs list     |                    | --json
alias           | NAME [ARGS…]       | --params^--params-file --format^--json
embed           |                    | --seed --input --output --spec --clean^--reembed-all --type* --select* --json
login           | NAME               | --token --json
logout          | NAME               | --json
profile list    |                    | --json
profile show    | [NAME]             | --json
version         |                    |
"""
SPELLED = {"?": "[{}]", "*": "[{}…]"}
ROWS = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
# Which global flags each takes; whatever else is given is refused.
SCOPES = {
    "server graph store profile": [
        "query",
        "commit list",
        "commit show",
        "commit changes",
        "changes poll",
        "changes baseline",
        "blob get",
        "blob stat",
    ],
    "server graph store profile as": [
        "mutate",
        "load",
        "ingest",
        "branch create",
        "branch list",
        "branch delete",
        "branch merge",
        "snapshot",
        "export",
        "schema show",
        "schema apply",
    ],
    "store profile cluster graph": ["optimize", "repair", "cleanup", "lint"],
    "store profile": ["schema plan"],
    "server profile": ["graphs list"],
    "cluster graph profile": [
        "policy validate",
        "policy test",
        "policy explain",
        "queries validate",
        "queries list",
    ],
    "as": ["cluster apply", "cluster approve"],
    "": [
        "cluster validate",
        "cluster plan",
        "cluster status",
        "cluster refresh",
        "cluster import",
        "cluster force-unlock",
        "init",
        "alias",
        "embed",
        "login",
        "logout",
        "profile list",
        "profile show",
        "version",
    ],
}
# Every command of the table is in exactly one of the scopes.
assert sorted(words for commands in SCOPES.values() for words in commands) == sorted(row[0] for row in ROWS)
ADDRESSING = ("server", "cluster", "graph", "store", "as", "profile")


def parser_for(words: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    return command_parser(BY_NAME[words])


def flag_of(parser: argparse.ArgumentParser, name: str) -> argparse.Action:
    """A flag by one of its spellings."""
    found = [action for action in parser._actions if name in action.option_strings]
    assert found, f"{parser.prog} has no {name}"
    return found[0]


def needed_words(words: str) -> list[str]:
    """The least that a command can be given."""
    parser = parser_for(words)
    given = words.split()
    for action in parser._actions:
        if not action.option_strings and action.nargs not in SPELLED:
            given.append(next(iter(action.choices)) if action.choices else "x")
        elif action.option_strings and action.required:
            given += [action.option_strings[0], next(iter(action.choices)) if action.choices else "x"]
    return given


@pytest.mark.parametrize(("words", "arguments", "flags"), ROWS, ids=[row[0] for row in ROWS])
def test_a_command_takes_the_arguments_and_flags_that_scripts_give_it(words: str, arguments: str, flags: str) -> None:
    parser = parser_for(words)
    positional = [action for action in parser._actions if not action.option_strings]
    spelled = [SPELLED.get(str(action.nargs), "{}").format(action.metavar) for action in positional]
    assert spelled == arguments.split()
    named = [flag for group in flags.split() for flag in group.split("^")]
    for written in named:
        flag = flag_of(parser, written.rstrip("!*"))
        assert flag.required == written.endswith("!"), written
        if written.endswith("*"):
            assert isinstance(flag, argparse._AppendAction), written
    required = {action.option_strings[0] for action in parser._actions if action.option_strings and action.required}
    assert required == {name.rstrip("!") for name in named if name.endswith("!")}


@pytest.mark.parametrize(
    ("words", "one", "other"),
    [(words, *group.split("^")) for words, _, flags in ROWS for group in flags.split() if "^" in group],
)
def test_of_two_flags_that_exclude_each_other_only_one_is_taken(run: Run, words: str, one: str, other: str) -> None:
    given = needed_words(words)
    for name in (one, other):
        flag = flag_of(parser_for(words), name)
        given += [name] if flag.nargs == 0 else [name, next(iter(flag.choices)) if flag.choices else "1"]
    assert run(*given).code == 2


@pytest.mark.parametrize("words", [row[0] for row in ROWS])
def test_an_unknown_flag_ends_with_code_2(run: Run, words: str) -> None:
    assert run(*needed_words(words), "--no-such-flag").code == 2


@pytest.mark.parametrize("words", [row[0] for row in ROWS if "!" in row[2]])
def test_a_missing_required_flag_ends_with_code_2(run: Run, words: str) -> None:
    ended = run(*words.split())
    assert ended.code == 2
    assert ended.err.startswith(f"usage: omnigraph {words}")


@pytest.mark.parametrize(
    ("words", "flag", "takes"),
    [
        (words, flag, flag in takes.split())
        for takes, commands in SCOPES.items()
        for words in commands
        for flag in ADDRESSING
    ],
)
def test_a_flag_of_another_kind_of_command_is_refused_by_name(run: Run, words: str, flag: str, takes: bool) -> None:
    assert (flag in BY_NAME[words].takes) == takes
    if not takes:
        ended = run(*needed_words(words), f"--{flag}", "x")
        assert ended.code == 1
        assert f"`{words}` is a " in ended.err
        assert f"command; --{flag} " in ended.err
        assert " and does not apply." in ended.err


def test_the_short_spelling_of_a_query_and_the_choices_of_modes_and_formats_stay() -> None:
    assert flag_of(parser_for("query"), "-e").dest == flag_of(parser_for("query"), "--query-string").dest
    assert flag_of(parser_for("load"), "--mode").choices == ("overwrite", "append", "merge")
    assert flag_of(parser_for("query"), "--format").choices == ("table", "kv", "csv", "jsonl", "json")


# What answers with something that is no document of ours, whoever asks.
NO_DOCUMENT = {
    "blob get": "the bytes of the blob",
    "shell": "a conversation",
    "mcp": "a conversation, in the protocol of agents",
    "demo": "a tour, to be read",
    "completion": "a script for a shell",
}


@pytest.mark.parametrize("words", [spec.name for spec in COMMANDS])
def test_every_command_whose_answer_is_a_document_gives_it_as_json(words: str) -> None:
    offered = {spelled for action in parser_for(words)._actions for spelled in action.option_strings}
    assert ("--json" in offered) is (words not in NO_DOCUMENT)


def test_old_spellings_lead_to_the_commands_of_today() -> None:
    assert ALIASES == {"schema get": "schema show"}
    assert DEPRECATED == {
        "read": "query",
        "change": "mutate",
        "check": "lint",
        "query lint": "lint",
        "query check": "lint",
    }


# --- exit codes -------------------------------------------------------------------------------------------------------


def test_a_lost_race_ends_with_code_4_and_says_so_in_json(run: Run, library: str) -> None:
    add = 'query q() { insert Author { name: "Butler" } }'
    ended = run("mutate", "--store", library, "-e", add, "--if-commit", "01AAAAAAAAAAAAAAAAAAAAAAAA", "--json")
    assert ended.code == 4
    assert '"precondition_failure"' in ended.out
    assert (
        "precondition failed on branch 'main': expected head '01AAAAAAAAAAAAAAAAAAAAAAAA' but current is" in ended.err
    )


def test_what_goes_wrong_while_running_ends_with_code_1_and_speaks_on_stderr_only(run: Run, library: str) -> None:
    ended = run("query", "--store", library, "-e", "nonsense")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: parse error")


def test_a_cleanup_without_consent_shows_what_it_would_do_and_ends_well(run: Run, library: str) -> None:
    ended = run("cleanup", library, "--keep", "1")
    assert ended.code == 0
    assert ended.err != ""


def test_a_cleanup_that_says_not_what_to_keep_and_a_forced_repair_without_consent_are_refused(
    run: Run, library: str
) -> None:
    assert run("cleanup", library).code == 1
    assert run("repair", library, "--force").code == 2


def test_lint_ends_with_code_1_where_a_query_is_wrong(run: Run, library: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.gq"
    path.write_text("query q() { match { $a: Nobody } return { $a.name } }")
    assert run("lint", library, "--query", str(path)).code == 1
