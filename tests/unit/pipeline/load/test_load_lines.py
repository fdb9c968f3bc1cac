"""Lines to rows: what a record must look like, said in the same words whichever way it was read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.language.schema import accept
from omnigraph.pipeline.load.blocks import lines_at, pieces_of
from omnigraph.pipeline.load.problems import Located, Problem, located
from omnigraph.pipeline.load.reading import Reading, rows_of
from omnigraph.pipeline.load.sources import Source, sources_of
from omnigraph.transaction.accepted import accepted_schema

SCHEMA = """
node Person { name: String @key  age: I32?  score: F64?  small: F32?  ok: Bool?  born: Date?  seen: DateTime? }
node Thing { a: String  many: [I32]?  face: Vector(2)?  raw: Blob?  big: U64? }
edge Knows: Person -> Person { since: Date? }
node Day { on: Date @key }
node Moment { at: DateTime @key }
node Size { n: I32 @key }
node Slot { hall: String  on: Date  @key(hall, on) }
edge Next: Day -> Moment
edge Fits: Size -> Slot { w: I32?  @key(src, dst) }
"""
ACCEPTED = accepted_schema("digest", accept(SCHEMA, ids=UlidSource()))
LOAD = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
GOOD = '{"type":"Person","data":{"name":"Ada"}}'


def read(
    data: "bytes | Sequence[Source]", *, piece_bytes: int = 1 << 30, block_bytes: int = 1 << 20, strict: bool = True
) -> tuple[dict[str, list[dict[str, Any]]], list[Located]]:
    """The rows by type, without ids that were made, and what is wrong."""
    sources = sources_of(data, format=None, strict=strict) if isinstance(data, bytes) else tuple(data)
    rows: dict[str, list[dict[str, Any]]] = {}
    problems: list[Problem] = []
    reading = Reading(ACCEPTED, LOAD, block_bytes=block_bytes)
    for piece in pieces_of(sources, piece_bytes=piece_bytes):
        for block in rows_of(piece, reading):
            for each in block:
                if isinstance(each, Problem):
                    problems.append(each)
                else:
                    made = each.rows.to_pylist()
                    if each.ids_are_fresh:
                        made = [{name: value for name, value in row.items() if name != "id"} for row in made]
                    rows.setdefault(each.entity.name, []).extend(made)
    return rows, located(problems, sources)


def complaint(line: str | bytes, **how: Any) -> str:  # noqa: ANN401  (passed on)
    """What is said of one line between two good ones."""
    raw = line if isinstance(line, bytes) else line.encode()
    good = GOOD.encode()
    rows, wrong = read(good + b"\n" + raw + b"\n" + good.replace(b"Ada", b"Bob"), **how)
    assert [row["id"] for row in rows["Person"]] == ["Ada", "Bob"], "the others are read all the same"
    assert len(wrong) == 1
    return str(wrong[0].error)


def data(**values: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": "C", **values}})


def thing(**values: object) -> str:
    return json.dumps({"type": "Thing", "data": {"a": "x", **values}})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "invalid strict JSON at line 2: Expecting property name enclosed in double quotes at column 2"),
        ('{"type":"Person","type":"Person"}', "invalid strict JSON at line 2: duplicate JSON member 'type'"),
        ('{"type":"Person","data":{"name":"a","name":"b"}}', "invalid strict JSON at line 2: duplicate JSON member"),
        (
            '{"type":"Person","data":{"name":"a","score":NaN}}',
            "line 2: property 'score' value nan must be finite for Float64",
        ),
        (b'{"type":"Person","data":{"name":"\xff"}}', "invalid strict JSON at line 2: not UTF-8"),
        (GOOD + GOOD, "invalid strict JSON at line 2: Extra data"),
        ("[1]", "line 2: graph batch record must be one JSON object"),
        ("7", "line 2: graph batch record must be one JSON object"),
        ("{}", "line 2: graph batch record must contain exactly one of 'type' or 'edge'"),
        ('{"type":"Person","edge":"Knows"}', "line 2: graph batch record must contain exactly one of 'type' or 'edge'"),
        ('{"data":{},"type":"A","edge":"B"}', "line 2: graph batch record must contain exactly one of"),
        ('{"type":"Person","id":"x"}', "line 2: unknown top-level graph batch field 'id'"),
        ('{"type":"Person","from":"x"}', "line 2: unknown top-level graph batch field 'from'"),
        ('{"type":"Person","_tombstone":1}', "line 2: top-level field '_tombstone' is reserved physical state"),
        ('{"type":1}', "line 2: graph batch field 'type' must be a string, got 1"),
        ('{"edge":"Knows","from":1,"to":"a"}', "line 2: graph batch field 'from' must be a string, got 1"),
        ('{"edge":"Knows","from":null,"to":"a"}', "line 2: graph batch field 'from' must be a string, got null"),
        ('{"edge":"Knows","from":"a"}', "line 2: graph batch record requires field 'to'"),
        ('{"type":"Person","data":[]}', "line 2: graph batch field 'data' must be an object, got []"),
        ('{"type":"Person","data":null}', "line 2: graph batch field 'data' must be an object, got null"),
        ('{"type":"person"}', "line 2: unknown node type 'person'"),
        ('{"edge":"Hates","from":"a","to":"b"}', "line 2: unknown edge type 'Hates'"),
        (
            '{"edge":"Knows","from":"a","to":"b","data":{"src":"a"}}',
            "line 2: edge data field 'src' is reserved structural state",
        ),
        (data(hat=1), "line 2: unknown input field 'hat' for 'node:Person'"),
        (data(_rowid=1), "line 2: input field '_rowid' is reserved physical state"),
        (data(id=7), "line 2: input entity of type 'Person' field 'id' must be a string, got 7"),
        (data(id="D"), "line 2: node Person explicit id 'D' does not match its canonical @key id 'C'"),
        ('{"type":"Person","data":{}}', "line 2: node Person is missing a non-null @key value"),
        (data(age="x"), "line 2: strict property 'age' expects Int32, got \"x\""),
        (data(age=1.5), "line 2: strict property 'age' expects Int32, got 1.5"),
        (data(age=True), "line 2: strict property 'age' expects Int32, got true"),
        (data(age=2**31), "line 2: property 'age' value 2147483648 exceeds Int32 range"),
        (data(small=1e39), "line 2: property 'small' value 1e+39 exceeds Float32 range"),
        (data(ok="yes"), "line 2: strict property 'ok' expects Boolean, got \"yes\""),
        (data(born="2020-02-30"), "line 2: invalid Date literal '2020-02-30'"),
        (data(seen="noon"), "line 2: invalid DateTime literal 'noon'"),
        (data(born=10**9), "line 2: Date value out of range: 1000000000"),
        ('{"type":"Thing"}', "line 2: non-nullable property 'a' has null or invalid values"),
        (thing(many=[1, None]), "line 2: strict list property 'many' contains a null or invalid item"),
        (thing(many=[2**31]), "line 2: list value 2147483648 exceeds Int32 range"),
        (thing(many=3), "line 2: list property 'many' expects a JSON array, got 3"),
        (thing(face=[1]), "line 2: vector property 'face' expects 2 dimensions, got 1"),
        (thing(face=[1, "x"]), "line 2: vector property 'face' elements must be numeric, got \"x\""),
        (thing(face="x"), "line 2: vector property 'face' expects a JSON array, got \"x\""),
        (thing(raw=1), "line 2: blob property 'raw' must be a URI string or base64: prefixed data"),
        (thing(raw="base64:?"), "line 2: invalid base64 blob data"),
        (thing(raw="s3://x/y"), "line 2: external blob URI 's3://x/y' is not allowed"),
        (thing(big=-1), "line 2: property 'big' value -1 exceeds UInt64 range"),
    ],
)
def test_a_wrong_line_is_told_in_words(line: str | bytes, message: str) -> None:
    assert message in complaint(line)
    assert message in complaint(line, block_bytes=64), "however it is cut"


def test_byte_order_marks_blank_lines_and_carriage_returns_are_no_records() -> None:
    lines = [GOOD, "", "   ", "\t", GOOD.replace("Ada", "Bob"), " " + GOOD.replace("Ada", "Cid") + " "]
    rows, wrong = read(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n\r\nx\r\n")
    assert [row["id"] for row in rows["Person"]] == ["Ada", "Bob", "Cid"]
    assert [(each.number, each.record) for each in wrong] == [(8, "x")]
    assert read(b"") == ({}, [])
    assert read(b"\n\n") == ({}, [])


def test_a_cut_off_last_line_is_no_record() -> None:
    rows, wrong = read(f"{GOOD}\n{GOOD[:-2]}".encode())
    assert len(rows["Person"]) == 1
    assert [each.number for each in wrong] == [2]
    assert complaint('{"type":"Per') == "invalid strict JSON at line 2: Unterminated string starting at column 9"


def test_a_member_may_come_in_any_order_and_data_may_be_left_out() -> None:
    lines = ['{"data":{"name":"Ada","born":10},"type":"Person"}', '{"to":"b","from":"a","edge":"KNOWS"}']
    rows, wrong = read("\n".join(lines).encode())
    assert (rows["Person"][0]["born"].isoformat(), rows["Knows"][0]["src"], wrong) == ("1970-01-11", "a", [])


def test_lines_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOAD_LINE_SLOTS_MAX", 50)
    assert "graph_batch_json_structural_slots: actual 71, limit 50" in complaint(thing(many=[1] * 60))
    monkeypatch.setattr(limits, "LOAD_LINE_BYTES_MAX", 100)
    assert "graph_batch_line_bytes: actual 1" in complaint(data(hat="x" * 90))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "2020-01-31", "2020-01-31T10:00:00Z", "é", "base64:aGk="]),
    st.lists(st.one_of(st.integers(-9, 9), st.none()), max_size=3),
)
NAMES = st.sampled_from(["name", "age", "score", "ok", "born", "seen", "id", "hat", "small"])
RECORDS = st.one_of(
    st.builds(lambda data: {"type": "Person", "data": data}, st.dictionaries(NAMES, VALUES, max_size=4)),
    st.builds(lambda name: {"type": "Person", "data": {"name": name}}, st.text(max_size=4)),
    st.builds(lambda a, b: {"edge": "knows", "from": a, "to": b}, st.sampled_from("ab"), VALUES),
    st.dictionaries(st.sampled_from(["type", "edge", "data", "x"]), st.sampled_from(["Person", {}, 1]), max_size=3),
)


@settings(max_examples=60)
@given(st.lists(RECORDS, min_size=1, max_size=8), st.integers(0, 3), st.integers(20, 200))
def test_however_lines_are_grouped_and_cut_the_same_comes_out(records: list[object], blank: int, size: int) -> None:
    """One record at a time is the measure: what is read of many at once is what is read of each by itself."""
    lines = [json.dumps(each, ensure_ascii=bool(blank % 2)) for each in records]
    one_by_one: dict[str, list[dict[str, Any]]] = {}
    said = []
    for number, line in enumerate(lines, start=1):
        rows, wrong = read(line.encode())
        for name, some in rows.items():
            one_by_one.setdefault(name, []).extend(some)
        said += [str(each.error).replace("line 1", f"line {number * (blank + 1) - blank}") for each in wrong]
    together, wrong = read(("\n" * (blank + 1)).join(lines).encode(), block_bytes=size)
    assert together == one_by_one
    assert [str(each.error) for each in wrong] == said


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 200), st.integers(1, 200))
def test_every_line_belongs_to_exactly_one_piece(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], piece: int, block: int
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "x.jsonl"
    names = [f"{number}{'x' * size}" for number, size in enumerate(sizes)]
    path.write_text("\n".join(GOOD.replace("Ada", name) for name in names))
    rows, wrong = read(sources_of(path, format=None, strict=True), piece_bytes=piece, block_bytes=block)
    assert ([row["id"] for row in rows["Person"]], wrong) == (names, [])


def test_a_piece_that_is_read_twice_gives_the_same_ids() -> None:
    source = sources_of(b'{"type":"Thing","data":{"a":"x"}}\n' * 20, format=None, strict=True)
    pieces = pieces_of(source, piece_bytes=1 << 20)
    reading = Reading(ACCEPTED, LOAD)

    def ids() -> list[str]:
        found = [each for block in rows_of(pieces[0], reading) for each in block]
        rows = [each.rows for each in found if not isinstance(each, Problem)]
        return [str(name) for each in rows for name in each.column("id").to_pylist()]

    assert ids() == ids()
    assert len(set(ids())) == 20


def test_lines_are_numbered_and_shown_in_one_pass(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xef\xbb\xbfa\n\nbb\r\nccc")
    source = sources_of(path, format=None, strict=True)[0]
    assert lines_at(source, [3, 6, 10]) == [(1, "a"), (3, "bb"), (4, "ccc")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type":"Person","data":{"name":"C"}', "invalid JSON at record 2: Expecting ',' delimiter"),
        ("7", "record 2: expected 'type' or 'edge' field"),
        ('{"edge":"Knows","to":"a"}', "record 2: edge missing 'from'"),
        ('{"type":"Hat"}', "record 2: unknown node type 'Hat'"),
        ('{"type":"Person"}', "record 2: node Person missing @key property 'name'"),
        (
            '{"type":"Person","data":{"id":"x","name":"C"}}',
            "record 2: node Person has explicit id 'x' that does not match @key property 'name' canonical value 'C'",
        ),
        ('{"type":"Thing","data":{"a":1}}', "record 2: strict property 'a' expects Utf8, got 1"),
    ],
)
def test_the_forgiving_reader_has_words_of_its_own(text: str, message: str) -> None:
    _, wrong = read(f"{GOOD}\n{text}".encode(), strict=False)
    assert message in str(wrong[0].error)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (data(age=2**31), "property 'age' value 2147483648 exceeds Int32 range"),
        (data(age=-(2**31) - 1), "property 'age' value -2147483649 exceeds Int32 range"),
        (data(age=1.5), "strict property 'age' expects Int32, got 1.5"),
        (thing(big=-1), "property 'big' value -1 exceeds UInt64 range"),
        (thing(big=2**64), "property 'big' value 18446744073709551616 exceeds UInt64 range"),
        (data(small=1e39), "property 'small' value 1e+39 exceeds Float32 range"),
        (data(score=float("nan")), "property 'score' value nan must be finite for Float64"),
        (data(score=1).replace("1}", "1e999}"), "property 'score' value inf must be finite for Float64"),
        (data(born="2024-02-30"), "invalid Date literal '2024-02-30' for property 'born'"),
        (data(born=10**9), "Date value out of range: 1000000000 (property 'born')"),
        (data(born=1.5), "strict property 'born' expects Date32, got 1.5"),
        (data(seen="yesterday"), "invalid DateTime literal 'yesterday' for property 'seen'"),
        (thing(many=7), "list property 'many' expects a JSON array, got 7"),
        (thing(many="7"), "list property 'many' expects a JSON array, got \"7\""),
        (thing(many=[2**31]), "list value 2147483648 exceeds Int32 range (property 'many')"),
        (thing(many=[1, "x"]), "strict list property 'many' contains a null or invalid item"),
        (thing(face=[1]), "vector property 'face' expects 2 dimensions, got 1"),
        (thing(face=[1, "x"]), "vector property 'face' elements must be numeric, got \"x\""),
        (thing(face={"x": 1}), "vector property 'face' expects a JSON array, got {\"x\": 1}"),
        (thing(face=[1, 1e39]), "property 'face' value 1e+39 exceeds Float32 range"),
        (thing(raw="base64:?"), "invalid base64 blob data: "),
        (thing(raw="base64:é"), "invalid base64 blob data: string argument should contain only ASCII"),
        (thing(a="x").replace('"x"', '"\\ud800"'), "strict property 'a' expects Utf8"),
    ],
)
def test_the_forgiving_reader_forgives_no_malformed_value(line: str, message: str) -> None:
    assert complaint(line, strict=False).startswith(f"record 2: {message}")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", ("1", True, [1], {})),
        ("score", ("1", False, [])),
        ("ok", (1, "true", 0.0)),
        ("born", (True, ["2020-01-01"])),
        ("seen", (False, {})),
        ("raw", (1, [], True)),
    ],
)
def test_the_forgiving_reader_takes_another_json_type_for_nothing(name: str, values: tuple[object, ...]) -> None:
    line = thing if name == "raw" else data
    for value in values:
        rows, wrong = read(line(**{name: value}).encode(), strict=False)
        assert wrong == []
        assert [row[name] for kind in rows.values() for row in kind] == [None]


def test_the_forgiving_reader_forgives_nothing_in_a_required_property() -> None:
    assert "strict property 'a' expects Utf8, got 1" in complaint(thing(a=1), strict=False)


def test_a_number_of_too_many_digits_is_told() -> None:
    _, wrong = read(data(age=1).replace("1}", "1" * 5000 + "}").encode(), strict=False)
    assert "invalid JSON at record 1: " in str(wrong[0].error)


def of_old(kind: str, id_: str, **values: object) -> str:
    return json.dumps({"type": kind, "data": {"id": id_, **values}})


def edge_of_old(kind: str, source: str, target: str, **values: object) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": values})


@pytest.mark.parametrize(
    ("day", "moment"),
    [
        ("2024-01-31", "2024-01-31T10:00:00Z"),
        ("19753", "1706695200000"),
        ("19753", "2024-01-31T11:00:00+01:00"),
        ("019753", "2024-01-31T10:00:00.000Z"),
    ],
)
@pytest.mark.parametrize("with_nodes", [True, False], ids=["nodes there", "edges alone"])
def test_ids_of_older_releases_are_brought_over_with_the_edges_that_name_them(
    day: str, moment: str, *, with_nodes: bool
) -> None:
    edge = edge_of_old("Next", day, moment)
    nodes = [of_old("Day", day, on="2024-01-31"), of_old("Moment", moment, at=1706695200000)]
    rows, wrong = read("\n".join([edge, *(nodes if with_nodes else [])]).encode(), strict=False)
    assert wrong == []
    assert [(row["src"], row["dst"]) for row in rows["Next"]] == [("19753", "1706695200000")]
    if with_nodes:
        assert [rows[kind][0]["id"] for kind in ("Day", "Moment")] == ["19753", "1706695200000"]


@pytest.mark.parametrize("size", ["42", "00042", "+42"])
@pytest.mark.parametrize("slot", ['["a","19753"]', '["a","2024-01-31"]', '[ "a", 19753 ]', "a", "2024-01-31"])
def test_ids_of_numbers_and_of_several_parts_are_brought_over(size: str, slot: str) -> None:
    edge = edge_of_old("Fits", size, slot, id=json.dumps([size, slot], separators=(",", ":")))
    nodes = [of_old("Size", size, n=42), of_old("Slot", slot, hall="a", on="2024-01-31")]
    rows, wrong = read("\n".join([edge, *nodes]).encode(), strict=False)
    assert wrong == []
    assert [(row["src"], row["dst"]) for row in rows["Fits"]] == [("42", '["a","19753"]')]
    assert rows["Fits"][0]["id"] == json.dumps(["42", '["a","19753"]'], separators=(",", ":"))


def test_an_id_of_two_nodes_is_told_by_the_edge_that_names_it() -> None:
    lines = [
        of_old("Slot", "a", hall="a", on=1),
        of_old("Slot", "a", hall="a", on=2),
        edge_of_old("Fits", "1", "a"),
        edge_of_old("Fits", "1", '["a","2"]'),
    ]
    rows, wrong = read("\n".join(lines).encode(), strict=False)
    assert [str(each.error) for each in wrong] == [
        'record 3: \'a\' is the id of several Slot nodes, \'["a","1"]\' and \'["a","2"]\' among them; name the one the '
        "edge is about by that"
    ]
    assert [row["dst"] for row in rows["Fits"]] == ['["a","2"]']


def test_an_id_that_means_no_part_of_the_key_is_refused() -> None:
    _, wrong = read(of_old("Size", "43", n=42).encode(), strict=False)
    assert "node Size has explicit id '43' that does not match @key property 'n' canonical value '42'" in str(
        wrong[0].error
    )
