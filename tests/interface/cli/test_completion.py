"""Words completed by real shells, from the scripts that the program prints; and these scripts, word for word."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.command_line import Run

GOLDEN = Path(__file__).parent / "golden" / "elsewhere"
TYPED = [
    ("omnigraph bl", ["blame", "blob"]),
    ("omnigraph branch ", ["create", "delete", "list", "merge"]),
    ("omnigraph branch cr", ["create"]),
    ("omnigraph load --mod", ["--mode"]),
    ("omnigraph load --mode a", ["append"]),
    ("omnigraph --store g load --format ", ["csv", "jsonl", "parquet"]),
    ("omnigraph commit changes --pa", ["--page-token"]),
    ("omnigraph version --sto", []),
]
# Completes a line as readline would, and prints the words offered.
BASH = """\
source "$1"
read -r -a COMP_WORDS <<< "$2"
if [[ "$2" == *" " ]]; then COMP_WORDS+=(""); fi
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_omnigraph
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def scripts(run: Run, tmp_path: Path) -> Path:
    """A folder with the script of each shell."""
    for shell in ("bash", "zsh", "fish"):
        ended = run("completion", shell)
        assert (ended.code, ended.err) == (0, "")
        (tmp_path / f"omnigraph.{shell}").write_text(ended.out)
    return tmp_path


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_what_it_was(scripts: Path, shell: str) -> None:
    kept = GOLDEN / f"completion.{shell}"
    found = (scripts / f"omnigraph.{shell}").read_text()
    if os.environ.get("OMNIGRAPH_GOLDEN") == "accept":
        kept.write_text(found)
    assert found == kept.read_text()


@pytest.mark.parametrize(("line", "expected"), TYPED)
def test_bash_completes_commands_flags_and_their_choices(scripts: Path, line: str, expected: list[str]) -> None:
    asked = ["bash", "--norc", "-c", BASH, "bash", str(scripts / "omnigraph.bash"), line]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == expected


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed on this machine")
@pytest.mark.parametrize(("line", "expected"), [each for each in TYPED if each[1]])
def test_fish_completes_the_same(scripts: Path, line: str, expected: list[str]) -> None:
    asked = ["fish", "--no-config", "-c", f"source {scripts}/omnigraph.fish; complete -C '{line}'"]
    environment = {"HOME": str(scripts), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env=environment)
    assert sorted(offered.split("\t")[0] for offered in done.stdout.splitlines()) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed on this machine")
def test_zsh_takes_its_script(scripts: Path) -> None:
    asked = [
        "zsh",
        "-f",
        "-c",
        f"autoload -U compinit && compinit -D && source {scripts}/omnigraph.zsh && print $_comps[omnigraph]",
    ]
    done = subprocess.run(
        asked, capture_output=True, text=True, check=True, env={"HOME": str(scripts), "PATH": "/usr/bin"}
    )
    assert "_omnigraph" in done.stdout
    assert done.stderr == ""


def test_an_unknown_shell_is_a_usage_error(run: Run) -> None:
    assert run("completion", "tcsh").code == 2
