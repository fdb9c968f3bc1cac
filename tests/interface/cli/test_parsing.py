"""The parser: commands, global flags, deprecated spellings, help and usage errors."""

import subprocess
import sys

import pytest
from tests.support.command_line import Run

from omnigraph.cli.parsing import GLOBAL_FLAGS
from omnigraph.cli.specs import COMMANDS, CommandSpec

QUERY = "query names() { match { $a: Author } return { $a.name } }"


def test_no_words_and_help_show_every_command_that_is_not_hidden(run: Run) -> None:
    shown = run()
    assert shown.code == 0
    assert shown == run("--help") == run("-h")
    for spec in COMMANDS:
        assert (f" {spec.name} " in shown.out) is not spec.hidden


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: spec.name)
def test_every_command_has_help_with_an_example_and_only_flags_that_apply(run: Run, spec: CommandSpec) -> None:
    shown = run(*spec.path, "--help")
    assert shown.code == 0
    assert f"usage: omnigraph {spec.name}" in shown.out
    assert "examples:" in shown.out
    assert f"omnigraph {spec.path[0]}" in shown.out.split("examples:")[1]
    listed = {flag for flag in GLOBAL_FLAGS if f"\n  --{flag} " in shown.out.split("global flags:")[1]}
    assert listed == spec.takes | {"debug"}


def test_a_global_flag_may_stand_before_or_after_the_command(run: Run, library: str) -> None:
    before = run("--store", library, "query", "-e", QUERY)
    after = run("query", "-e", QUERY, "--store", library)
    joined = run(f"--store={library}", "query", "-e", QUERY)
    assert before.code == 0
    assert before == after == joined


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest(run: Run) -> None:
    ended = run("qeury")
    assert ended.code == 2
    assert "unknown command 'qeury'; did you mean 'query'?" in ended.err
    assert run("branch", "crate").code == 2
    assert "create, list, delete" in run("branch", "crate").err


def test_a_group_without_its_command_is_a_usage_error_that_shows_the_group(run: Run) -> None:
    ended = run("branch")
    assert (ended.code, ended.out) == (2, "")
    assert run("branch", "--help").out in ended.err
    assert ended.err.endswith("error: no command was given\n")


def test_the_overview_names_every_global_flag(run: Run) -> None:
    shown = run("--help").out
    for flag in (*(f"--{name}" for name in GLOBAL_FLAGS), "--version", "--help"):
        assert f"{flag} " in shown


def test_a_command_without_an_address_is_told_the_ways_it_can_be_given_one(run: Run) -> None:
    assert "give --server NAME|URL or --profile NAME, or set" in run("graphs", "list").err
    assert "give --store URI, --cluster DIR|URI or --profile NAME, or set" in run("sweep").err
    assert "give --store URI, --server NAME|URL or --profile NAME, or set" in run("branch", "list").err


def test_an_unknown_flag_and_a_missing_argument_are_usage_errors(run: Run) -> None:
    assert run("init", "somewhere").code == 2
    assert "--schema" in run("init", "somewhere").err
    assert run("branch", "list", "--nonsense").code == 2
    assert run("--nonsense", "branch", "list").code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [("read", "query"), ("change", "mutate"), ("check", "lint"), ("query lint", "lint"), ("query check", "lint")],
)
def test_an_old_spelling_still_works_and_says_so(run: Run, old: str, new: str) -> None:
    ended = run(*old.split(), "--nonsense")
    assert ended.code == 2
    assert f"usage: omnigraph {new} " in ended.err


@pytest.mark.parametrize(("old", "new"), [("read", "query"), ("change", "mutate")])
def test_an_old_spelling_is_named_once_on_stderr(run: Run, library: str, old: str, new: str) -> None:
    ended = run(old, "--store", library, "-e", "nonsense")
    assert ended.err.startswith(f"warning: `omnigraph {old}` is deprecated; use `omnigraph {new}` instead\n")
    assert ended.code == 1


def test_the_version_is_two_lines_however_it_is_asked_for(run: Run) -> None:
    assert run("version").out.splitlines()[1] == "internal-schema 6"
    assert run("version") == run("-v") == run("--version")


def test_words_that_are_no_text_are_a_usage_error_that_shows_them(run: Run) -> None:
    ended = run("stats", "caf\udce9")
    assert (ended.code, ended.out, ended.err) == (2, "", "error: not in UTF-8: 'caf\\udce9'\n")


@pytest.mark.parametrize("given", ["-1", "1.5", "nan", "", "٣", "9" * 19, "9" * 5000])
def test_an_amount_that_counts_nothing_is_a_usage_error(run: Run, given: str) -> None:
    ended = run("log", "Author", "a", "--store", "nowhere", f"--limit={given}")
    assert ended.code == 2
    assert ended.err.endswith(f"error: argument --limit: '{given}' is not a whole number of at most 18 digits\n")


@pytest.mark.parametrize("out", ["", "/", "."])
def test_a_file_to_write_that_is_no_file_is_refused_by_name(run: Run, library: str, out: str) -> None:
    ended = run("viz", "schema", library, f"--out={out}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the page cannot be written to {out or '.'}: not a file name\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_program_whose_streams_are_closed_does_its_work(closed: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m omnigraph.cli version {closed}"], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
