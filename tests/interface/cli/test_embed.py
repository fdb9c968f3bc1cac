"""`omnigraph embed`."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run

from omnigraph.embedding.provider import MockProvider, Purpose

SPEC = {"dimension": 4, "types": {"Doc": {"target": "vec", "fields": ["title", "body"]}}}
RECORDS = [
    {"type": "Doc", "data": {"title": "a", "body": "x", "lang": "en"}},
    {"type": "Doc", "data": {"title": "b", "lang": "de", "vec": [1.0, 0.0, 0.0, 0.0]}},
    {"type": "Other", "data": {"title": "c"}},
    {"edge": "Cites", "from": "a", "to": "b"},
]


@pytest.fixture(autouse=True)
def _mock(operator_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # after the operator's own provider is gone
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RECORDS))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return {
        name: str(tmp_path / file) for name, file in (("in", "in.jsonl"), ("out", "out.jsonl"), ("spec", "spec.json"))
    }


def embedded(run: Run, files: dict[str, str], *more: str) -> tuple[dict[str, object], list[dict[str, object]]]:
    ended = run("embed", "--input", files["in"], "--output", files["out"], "--spec", files["spec"], "--json", *more)
    assert ended.code == 0, ended.err
    return json.loads(ended.out), [json.loads(line) for line in Path(files["out"]).read_text().splitlines()]


def vector(text: str) -> list[float]:
    return [float(each) for each in MockProvider().embed(text, 4, Purpose.DOCUMENT)]


def test_missing_vectors_are_filled_and_everything_else_leaves_as_it_came(run: Run, files: dict[str, str]) -> None:
    report, records = embedded(run, files)

    assert report == {
        "input": files["in"],
        "output": files["out"],
        "records": 4,
        "selected_records": 2,
        "embedded_records": 1,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": None,
    }
    assert records[0]["data"]["vec"] == vector("type: Doc\ntitle: a\nbody: x")  # type: ignore[index]  # JSON
    assert records[1:] == RECORDS[1:]


def test_all_or_some_can_be_embedded_again_or_cleaned(run: Run, files: dict[str, str]) -> None:
    report, records = embedded(run, files, "--reembed-all")
    assert (report["mode"], report["embedded_records"]) == ("reembed_all", 2)
    assert records[1]["data"]["vec"] == vector("type: Doc\ntitle: b")  # type: ignore[index]  # JSON

    report, _ = embedded(run, files, "--select", "Doc:lang=de")
    assert (report["mode"], report["selected_records"], report["embedded_records"]) == ("reembed_selected", 1, 1)
    report, _ = embedded(run, files, "--select", "lang=fr")
    assert report["selected_records"] == 0

    report, records = embedded(run, files, "--clean")
    assert (report["mode"], report["cleaned_records"]) == ("clean", 1)
    assert "vec" not in records[1]["data"]  # type: ignore[operator]  # JSON


def test_a_seed_names_everything(run: Run, files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "seed.yaml").write_text(f"seed: {{data: in.jsonl}}\nembeddings: {json.dumps(SPEC)}\n")
    ended = run("embed", "--seed", str(tmp_path / "seed.yaml"))
    out = tmp_path / "build" / "seed.embedded.jsonl"
    assert ended.out == f"embedded 1 records (selected 2, cleaned 0) from {files['in']} -> {out} [fill_missing 4d]\n"
    assert len(out.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--select", "x"], "--select takes TYPE:FIELD=VALUE or FIELD=VALUE, not 'x'"),
        (["--type", "Nope"], "the specification has no type 'Nope'; it has Doc"),
        (["--output", ""], "into .: not a file name"),
    ],
)
def test_wrong_words_are_refused_and_leave_no_file(
    run: Run, files: dict[str, str], words: list[str], message: str
) -> None:
    ended = run("embed", "--input", files["in"], "--output", files["out"], "--spec", files["spec"], *words)
    assert ended.code == 1
    assert message in ended.err
    assert not Path(files["out"]).exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{}", "is not a specification of embeddings"),
        ("nonsense", "is not JSON"),
        ('{"dimension": 0, "types": {}}', "must be a whole number above zero"),
        ('{"dimension": 4, "types": {"Doc": {"target": "v", "fields": []}}}', "names no fields"),
    ],
)
def test_a_wrong_specification_is_refused(run: Run, files: dict[str, str], spec: str, message: str) -> None:
    Path(files["spec"]).write_text(spec)
    ended = run("embed", "--input", files["in"], "--output", files["out"], "--spec", files["spec"])
    assert (ended.code, message in ended.err) == (1, True)


def test_a_specification_that_is_not_there_is_told_as_such(run: Run, files: dict[str, str]) -> None:
    Path(files["spec"]).unlink()
    ended = run("embed", "--input", files["in"], "--output", files["out"], "--spec", files["spec"])
    assert f"error: the specification cannot be read from {files['spec']}: No such file or directory" in ended.err


def test_a_bad_line_is_named_and_nothing_is_left(run: Run, files: dict[str, str]) -> None:
    with Path(files["in"]).open("a") as file:
        file.write("{nonsense\n")
    ended = run("embed", "--input", files["in"], "--output", files["out"], "--spec", files["spec"])
    assert f"line 5 of {files['in']} is not JSON" in ended.err
    assert sorted(each.name for each in Path(files["out"]).parent.iterdir() if "out" in each.name) == []
