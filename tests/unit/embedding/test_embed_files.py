"""Files of records that are embedded: what is wrong with one is told with its place, and nothing half-made is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.embedding_server import embedding_server

from omnigraph.embedding.choose import choose_provider
from omnigraph.embedding.files import EmbedMode, EmbedReport, embed_file, read_selection, read_spec
from omnigraph.embedding.provider import MockProvider, Provider
from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.testing.clock import ManualClock

SPEC = {"dimension": 4, "types": {"Doc": {"target": "vec", "fields": ["title", "body"]}}}
LINES = b"""\
{"type": "Doc", "data": {"title": "one", "body": null}}

{"type": "Other", "data": {}}
{"edge": "Cites", "from": "one", "to": "two"}
{"type": "Doc", "data": {"title": "two", "vec": [1, 0, 0, 0]}}
"""


def embedded(folder: Path, lines: bytes, provider: Provider, **more: Any) -> EmbedReport:  # noqa: ANN401  (as it takes them)
    (folder / "in.jsonl").write_bytes(lines)
    given: dict[str, Any] = {"mode": EmbedMode.FILL_MISSING} | more
    return embed_file(
        folder / "in.jsonl", folder / "out.jsonl", read_spec(SPEC, where="spec.json"), lambda: provider, **given
    )


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (None, "is not a specification of embeddings"),
        ([], "is not a specification of embeddings"),
        ({"dimension": 4}, "is not a specification of embeddings: 'types'"),
        ({"dimension": 4, "types": []}, "is not a specification of embeddings"),
        ({"dimension": 4, "types": {"Doc": {"fields": ["a"]}}}, "is not a specification of embeddings: 'target'"),
        ({"dimension": 4, "types": {"Doc": {"target": "v", "fields": 5}}}, "is not a specification of embeddings"),
        ({"dimension": 4, "types": {"Doc": {"target": "v", "fields": "title"}}}, 'must be a list, like ["title"]'),
        ({"dimension": 4, "types": {"Doc": {"target": "v", "fields": []}}}, "names no fields"),
        ({"dimension": 0, "types": {}}, "must be a whole number above zero, not 0"),
        ({"dimension": True, "types": {}}, "must be a whole number above zero, not True"),
        ({"dimension": "4", "types": {}}, "must be a whole number above zero, not '4'"),
    ],
)
def test_a_specification_that_is_none_is_refused(document: object, told: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        read_spec(document, where="spec.json")
    assert told in refused.value.message


@pytest.mark.parametrize("text", ["", "=", "a", ":a=1", "Type:=1"])
def test_a_selection_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="--select takes TYPE:FIELD=VALUE or FIELD=VALUE"):
        read_selection(text)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "line 6 of .*in.jsonl is not JSON"),
        (b"\xff", "line 6 of .*in.jsonl is not JSON"),
        (b"[1]", "line 6 of .*in.jsonl is not a record"),
        (b'{"type": "Doc", "data": 5}', "line 6 of .*in.jsonl has no data"),
    ],
)
def test_a_line_that_is_no_record_is_told_and_the_file_of_before_stays(tmp_path: Path, line: bytes, told: str) -> None:
    embedded(tmp_path, LINES, MockProvider())
    before = (tmp_path / "out.jsonl").read_bytes()
    with pytest.raises(InvalidRequestError, match=told):
        embedded(tmp_path, LINES + line + b"\n", MockProvider())
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_service_that_fails_in_the_middle_leaves_the_file_of_before(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_bytes(b"of before")
    with embedding_server() as server:
        settings = {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
        service = choose_provider(settings, clock=ManualClock())
        server.next.bodies = [
            json.dumps({"data": [{"embedding": [1, 0, 0, 0]}]}).encode(),
            b'{"data": [{"embedding": [1]}]}',
        ]
        with pytest.raises(UnavailableError, match="answered with 1 dimensions instead of 4"):
            embedded(tmp_path, LINES, service, mode=EmbedMode.REEMBED_ALL)
        assert (tmp_path / "out.jsonl").read_bytes() == b"of before"
        report = embedded(tmp_path, LINES, service, mode=EmbedMode.REEMBED_ALL)
    assert (report.embedded_records, report.records, report.model) == (2, 4, "text-embedding-3-large")
    assert [asked.body["input"] for asked in server.asked[-2:]] == [
        ["type: Doc\ntitle: one"],
        ["type: Doc\ntitle: two"],
    ]


def test_what_is_not_embedded_leaves_as_it_came(tmp_path: Path) -> None:
    report = embedded(tmp_path, LINES, MockProvider())
    written = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    assert written[1:] == LINES.splitlines(keepends=True)[1:]
    assert len(json.loads(written[0])["data"]["vec"]) == 4
    assert (report.embedded_records, report.selected_records) == (1, 2)
