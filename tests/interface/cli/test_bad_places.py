"""Places where no graph is, or none that can be used: every command says so in words, and leaves them as they are."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run

from omnigraph.cli.specs import COMMANDS
from omnigraph.storage import paths

QUERY = "query q() { match { $a: Author } return { $a.name } }"
WRITE = 'query q() { insert Author { name: "Butler" } }'
COMMIT = "01AAAAAAAAAAAAAAAAAAAAAAAA"
# One line for every command that addresses a graph on storage; PLACE is where it is looked for.
LINES = [
    ["load", "PLACE", "--data", "people.jsonl", "--mode", "merge", "--engine", "local"],
    ["ingest", "PLACE", "--data", "people.jsonl"],
    ["export", "PLACE"],
    ["blob", "get", "node", "Author", "a", "photo", "--store", "PLACE"],
    ["blob", "stat", "node", "Author", "a", "photo", "--store", "PLACE"],
    ["query", "--store", "PLACE", "-e", QUERY],
    ["mutate", "--store", "PLACE", "-e", WRITE],
    ["explain", "--store", "PLACE", "-e", QUERY],
    ["lint", "PLACE", "--query", "books.gq"],
    ["branch", "create", "x", "--store", "PLACE"],
    ["branch", "list", "--store", "PLACE"],
    ["branch", "delete", "x", "--store", "PLACE"],
    ["branch", "merge", "x", "--store", "PLACE"],
    ["diff", "main", "x", "--store", "PLACE"],
    ["tag", "create", "x", "--store", "PLACE"],
    ["tag", "list", "--store", "PLACE"],
    ["tag", "show", "x", "--store", "PLACE"],
    ["tag", "delete", "x", "--store", "PLACE"],
    ["commit", "list", "PLACE"],
    ["commit", "show", COMMIT, "--store", "PLACE"],
    ["commit", "changes", COMMIT, "--store", "PLACE"],
    ["changes", "poll", "--store", "PLACE"],
    ["changes", "baseline", "--store", "PLACE", "--out", "state.jsonl"],
    ["snapshot", "PLACE"],
    ["schema", "show", "PLACE"],
    ["schema", "plan", "PLACE", "--schema", "library.pg"],
    ["schema", "apply", "PLACE", "--schema", "library.pg"],
    ["revert", COMMIT, "--store", "PLACE"],
    ["blame", "Author", "a", "--store", "PLACE"],
    ["log", "Author", "a", "--store", "PLACE"],
    ["stats", "PLACE"],
    ["viz", "schema", "PLACE", "--out", "page.html"],
    ["viz", "query", "--store", "PLACE", "-e", QUERY, "--out", "page.html"],
    ["viz", "diff", "main", "x", "--store", "PLACE", "--out", "page.html"],
    ["viz", "history", "PLACE", "--out", "page.html"],
    ["analytics", "degrees", "PLACE"],
    ["spark-sql", "SELECT 1", "--store", "PLACE"],
    ["optimize", "PLACE"],
    ["prune", "PLACE", "--keep", "1"],
    ["sweep", "PLACE"],
    ["cleanup", "PLACE", "--keep", "1"],
    ["verify", "PLACE"],
    ["repair", "PLACE"],
    ["maintain", "PLACE", "--once", "--keep", "1"],
    ["shell", "PLACE"],
    ["mcp", "PLACE"],
]
# What tells of damage where the others stop at it.
EXAMINERS = ("verify", "repair")


def test_every_command_that_addresses_storage_has_its_line() -> None:
    spoken = {spec.name for spec in COMMANDS if "store" in spec.takes}
    assert spoken == {name for line in LINES for name in (line[0], " ".join(line[:2])) if name in spoken}
    assert len(LINES) == len(spoken)


@pytest.fixture
def here(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph, and what the lines read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.jsonl").write_text('{"type":"Author","data":{"name":"Lem"}}\n')
    (tmp_path / "books.gq").write_text(QUERY)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(run: Run, here: Path, place: str, *, said: str, examined: str | None = None) -> None:
    """Every line, at one place, ends with code 1 and these words; nothing is changed."""
    before = content(here)
    for line in LINES:
        ended = run(*(place if word == "PLACE" else word for word in line))
        expected = examined if examined is not None and line[0] in EXAMINERS else said
        assert ended.code == 1, (line, ended)
        assert expected in ended.err + ended.out, (line, ended)
        assert "internal error" not in ended.err, (line, ended)
        assert "Traceback" not in ended.err + ended.out, (line, ended)
        assert content(here) == before, line


@pytest.mark.parametrize("what", ["nothing", "an empty folder", "a file", "another folder"])
def test_where_no_graph_is_every_command_says_so(run: Run, here: Path, what: str) -> None:
    place = here / "place"
    if what == "a file":
        place.write_bytes(bytes(range(256)))
    elif what != "nothing":
        place.mkdir()
    if what == "another folder":
        (place / "notes.txt").write_text("mine")
    refused(run, here, str(place), said=f"there is no graph at {place}; make one with init")


def test_a_graph_of_a_newer_release_is_refused_by_every_command(run: Run, here: Path, library: str) -> None:
    stamp = Path(library, paths.STAMP)
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "format": 99}))
    refused(run, here, library, said="has format 99, newer than the maximum 2 this release reads: upgrade omnigraph")


def test_a_graph_whose_stamp_is_no_text_is_told_as_damaged_by_every_command(run: Run, here: Path, library: str) -> None:
    Path(library, paths.STAMP).write_bytes(b"\xff\x00\xfe")
    refused(
        run,
        here,
        library,
        said=f"{paths.STAMP} is not readable JSON: 'utf-8' codec can't decode byte 0xff",
        examined="the format stamp cannot be read, and no graph opens without it",
    )


def test_a_repair_that_could_do_nothing_about_what_it_found_does_not_end_well(
    run: Run, here: Path, library: str
) -> None:
    stamp = Path(library, paths.STAMP)
    kept = stamp.read_bytes()
    stamp.unlink()
    assert run("repair", library, "--confirm").code == 1
    stamp.write_bytes(kept)
    assert run("repair", library, "--confirm").code == 0


def test_a_graph_whose_log_is_no_text_is_told_as_damaged_by_every_command(run: Run, here: Path, library: str) -> None:
    [entry] = Path(library, paths.LOGS).rglob("*.json")
    entry.write_bytes(b"\xff\x00\xfe")
    refused(run, here, library, said=f"{entry.name} is not readable JSON", examined="1 findings")


def test_advice_about_damage_is_to_look_for_more_of_it(run: Run, here: Path, library: str) -> None:
    [entry] = Path(library, paths.LOGS).rglob("*.json")
    entry.write_bytes(b"")
    assert "  try: see what is damaged and what can be done: omnigraph verify" in run("stats", library).err


@pytest.mark.parametrize("way", ["--store", "--cluster", "a positional URI"])
def test_an_empty_address_is_no_address(run: Run, here: Path, way: str) -> None:
    ended = run("optimize", *([""] if way == "a positional URI" else [way, " "]))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"error: {way} is empty: is a variable not set?\n"
    assert run("init", "", "--schema", "library.pg").code == 1
