"""Damage to what lies beside the tables: no answer is wrong, a verification names it, and it can be put aside."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.damage import cut

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.api.verify import FindingKind, Loss
from omnigraph.errors import FormatError, GraphError
from omnigraph.storage import derived, paths
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.transaction.schema_files import check_copy, read_text

QUIET = OpenOptions(durability="process", auto_compact=False)
SCHEMA = """
node Doc { slug: String @key  body: String? @index  vector: Vector(4)? @index  file: Blob? }
edge Cites: Doc -> Doc
"""
QUERIES = (
    "query cited() { match { $a: Doc  $b: Doc  $a cites $b } return { $a.slug as a, $b.slug as b } order { a, b } }",
    'query words() { match { $d: Doc  search($d.body, "word1") } return { $d.slug as s } order { s } }',
    "query near() { match { $d: Doc } return { $d.slug as s } "
    "order { nearest($d.vector, [3.0, 1.0, 2.0, 1.0]) } limit 3 }",
    'query one() { match { $d: Doc { slug: "d3" } } return { $d.body as body } }',
)


@pytest.fixture(scope="module", autouse=True)
def small_files() -> Iterator[None]:
    """Limits with which a small graph has every kind of file beside it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "ADJACENCY_FILE_EDGES_MIN", 1)
        patched.setattr(limits, "WORDS_FILE_TEXTS_MIN", 1)
        patched.setattr(limits, "INLINE_CHANGE_IDS_MAX", 1)
        patched.setattr(limits, "INLINE_FOOTPRINT_TOKENS_MAX", 2)
        patched.setattr(limits, "CHECKPOINT_ENTRIES", 4)
        patched.setattr(limits, "HINT_EVERY_ENTRIES", 2)
        yield


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, small_files: None) -> Path:
    root = tmp_path_factory.mktemp("template") / "graph"
    with omnigraph.init(root, SCHEMA, options=QUIET) as graph:
        for first in (0, 6):
            docs = [
                {"slug": f"d{each}", "body": f"word{each % 3}", "vector": [float(each), 1.0, 2.0, 1.0]}
                for each in range(first, first + 6)
            ]
            edges = [{"from": f"d{each}", "to": f"d{max(each - 1, 0)}"} for each in range(first, first + 6)]
            graph.write({"Doc": docs}, {"Cites": edges})
        graph.optimize()
        graph.branches.create("side")
        graph.write({"Doc": [{"slug": "s", "body": "word1"}]}, branch="side")
        answers(graph)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "graph"))


def answers(graph: Graph) -> list[list[dict[str, object]]]:
    return [[dict(row) for row in graph.query(query)] for query in QUERIES]


@pytest.fixture(scope="module")
def expected(template: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, object]]]:
    copy = shutil.copytree(template, tmp_path_factory.mktemp("expected") / "graph")
    with omnigraph.open(copy, options=QUIET) as graph:
        return answers(graph)


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def changed(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(bytes(body))


def scribbled(path: Path) -> None:
    path.write_bytes(b"{}")


DAMAGES = [removed, emptied, cut, changed, scribbled]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("folder", [derived.ADJACENCY, derived.WORDS])
def test_files_that_can_be_made_again_change_no_answer_are_named_and_go(
    folder: str, damage: Callable[[Path], None], root: Path, expected: list[list[dict[str, object]]]
) -> None:
    files = sorted(path for path in (root / folder).rglob("*") if path.is_file())
    assert len(files) >= (3 if folder == derived.ADJACENCY else 1)
    for path in files:
        again = Path(shutil.copytree(root, root.with_name(path.name + path.parent.name)))
        damaged = again / path.relative_to(root)
        damage(damaged)
        with omnigraph.open(again, read_only=True, options=QUIET) as reader:
            assert answers(reader) == expected, path
        report = omnigraph.verify(again, deep=True, quarantine=True)
        assert {each.kind for each in report.findings} <= {FindingKind.DERIVED}
        assert {each.loss for each in report.findings} <= {Loss.NOTHING}
        # One that is gone is no damage, unless another file says that it should be there.
        assert report.findings or damage is removed
        assert omnigraph.verify(again, deep=True).is_whole
        with omnigraph.open(again, options=QUIET) as graph:
            assert answers(graph) == expected
        assert omnigraph.verify(again, deep=True).is_whole


def test_files_of_another_release_are_no_damage(root: Path, expected: list[list[dict[str, object]]]) -> None:
    heads = list((root / derived.DERIVED).rglob("head.json"))
    words = [each for each in (root / derived.WORDS).rglob("*") if each.is_file()]
    assert heads
    assert words
    for path in heads:
        path.write_bytes(derived.sealed({**derived.unsealed(path.read_bytes()), "format": 99}))
    for path in words:
        body = path.read_bytes()
        assert body.count(b'"format":3') == 1
        path.write_bytes(body.replace(b'"format":3', b'"format":9'))

    assert omnigraph.verify(root, deep=True).is_whole

    with omnigraph.open(root, read_only=True, options=QUIET) as reader:
        assert answers(reader) == expected


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_a_change_file_with_any_damage_is_told_in_words(damage: Callable[[Path], None], root: Path) -> None:
    for path in sorted((root / paths.CHANGES).glob("*.arrow")):
        damage(path)
    report = omnigraph.verify(root)
    assert {each.kind for each in report.findings} == {FindingKind.CHANGES}
    assert report.lost == {}
    with omnigraph.open(root, options=QUIET) as graph:
        for commit in graph.commits.list():
            with contextlib.suppress(GraphError):  # told in words, or found out from the tables
                graph.commits.changes(commit.id)
        graph.write({"Doc": [{"slug": "new"}]})


def test_any_byte_of_a_change_file_may_change_without_a_raw_error(root: Path) -> None:
    path = sorted((root / paths.CHANGES).glob("*.arrow"))[0]
    body = path.read_bytes()
    parsed = 0
    for place in range(0, len(body), 3):
        try:
            read_change_file(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :], path="changed")
            parsed += 1
        except FormatError:
            continue
    assert parsed < len(body) // 3


@pytest.mark.parametrize("damage", DAMAGES[1:], ids=lambda each: each.__name__)
def test_a_lease_nobody_can_read_stops_sweeps_until_it_is_put_aside(damage: Callable[[Path], None], root: Path) -> None:
    with omnigraph.open(root, options=QUIET) as graph:
        with graph.lease():
            (held,) = (root / paths.LEASES).iterdir()
            body = held.read_bytes()
        path = root / paths.LEASES / held.name
        path.write_bytes(body.replace(b'"format"', b'"fOrmat"') if damage is changed else body)
        if damage is not changed:
            damage(path)
        with pytest.raises(FormatError, match="lease"):
            graph.sweep(older_than=0)

        report = graph.verify(quarantine=True)

        assert [(each.kind, each.loss) for each in report.findings] == [(FindingKind.LEASE, Loss.NOTHING)]
        assert [path.name for path in (root / paths.QUARANTINE).rglob("*.json")] == [held.name]
        assert graph.verify().is_whole
        graph.sweep(older_than=0)


@pytest.mark.parametrize("text", ["", "x", "-7", "1", "999", "\x00\xff"])
def test_a_hint_that_leads_astray_leads_nobody_astray(
    text: str, root: Path, expected: list[list[dict[str, object]]]
) -> None:
    (root / paths.hint("main")).write_text(text, encoding="latin-1")
    with omnigraph.open(root, options=QUIET) as graph:
        assert answers(graph) == expected
        findings = graph.verify(quarantine=True).findings
        assert [each.kind for each in findings] == ([FindingKind.HINT] if text == "999" else [])
        graph.write({"Doc": [{"slug": "next"}]})
    assert omnigraph.verify(root).is_whole


@pytest.mark.parametrize("branch", ["main", "side"])
@pytest.mark.parametrize("damage", [removed, emptied], ids=lambda each: each.__name__)
def test_the_first_entry_of_a_branch_is_missed_and_put_back(
    damage: Callable[[Path], None], branch: str, root: Path, expected: list[list[dict[str, object]]]
) -> None:
    for path in (root / paths.CHECKPOINTS).rglob("*.json"):
        path.unlink()
    damage(root / paths.entry(branch, 1))
    (finding,) = omnigraph.verify(root).findings
    assert (finding.kind, finding.path) == (FindingKind.ENTRY, paths.entry(branch, 1))

    report = omnigraph.verify(root, quarantine=True)

    assert len(report.quarantined) == 1
    assert omnigraph.verify(root, deep=True).is_whole
    with omnigraph.open(root, options=QUIET) as graph:
        assert answers(graph) == expected
        assert graph.count("Doc", branch="side") == 13
        graph.write({"Doc": [{"slug": "next"}]}, branch=branch)
        graph.sweep(older_than=0)
        assert graph.commits.list(branch=branch)


@pytest.mark.parametrize("damage", [removed, changed], ids=lambda each: each.__name__)
def test_the_text_of_a_schema_is_missed_and_every_row_is_readable(
    damage: Callable[[Path], None], root: Path, expected: list[list[dict[str, object]]]
) -> None:
    (text,) = (root / "__schema").glob("*.pg")
    if damage is removed:
        text.unlink()
    else:
        text.write_bytes(b"\xff\xfe node Doc")
    (finding,) = omnigraph.verify(root).findings
    assert (finding.kind, finding.loss) == (FindingKind.SCHEMA, Loss.HISTORY)
    with omnigraph.open(root, options=QUIET) as graph:
        assert answers(graph) == expected
        with pytest.raises(GraphError):
            graph.schema_text()
    assert [each.kind for each in omnigraph.verify(root, quarantine=True).findings] == [FindingKind.SCHEMA]
    assert omnigraph.verify(root, deep=True).is_whole
    with omnigraph.open(root, options=QUIET) as graph:
        assert "node Doc" in graph.schema_text()


def test_every_flipped_bit_in_the_text_of_a_schema_is_found(root: Path) -> None:
    (path,) = (root / "__schema").glob("*.pg")
    whole = path.read_bytes()
    text = omnigraph.open(root, options=QUIET).schema_text()
    unseen = []
    with omnigraph.open(root, read_only=True, options=QUIET) as graph:
        parts = graph._open()
        digest = parts.log.live_head("main").schema
        for bit in range(0, 8 * len(whole), 5):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                assert read_text(parts.store, digest) == text
                check_copy(parts.store, digest)
            except FormatError:
                continue
            unseen.append(bytes(damaged))
    path.write_bytes(whole)
    assert unseen == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_a_resolved_schema_is_made_again_from_the_copy_beside_its_text(
    damage: Callable[[Path], None], root: Path, expected: list[list[dict[str, object]]]
) -> None:
    (resolved,) = (root / "__schema").glob("*.json")
    whole = resolved.read_bytes()
    damage(resolved)
    with omnigraph.open(root, options=QUIET) as graph:
        assert answers(graph) == expected
        graph.write({"Doc": [{"slug": "next"}]})
    report = omnigraph.verify(root, quarantine=True)
    assert [(each.kind, each.loss) for each in report.findings] == [(FindingKind.SCHEMA, Loss.NOTHING)]
    assert resolved.read_bytes() == whole
    assert omnigraph.verify(root, deep=True).is_whole


@pytest.mark.parametrize("damage", DAMAGES[1:], ids=lambda each: each.__name__)
def test_checksums_that_cannot_be_read_are_named_and_noted_again(damage: Callable[[Path], None], root: Path) -> None:
    for path in (root / "__manifest/digests").glob("*.json"):
        if damage is changed:
            path.write_bytes(path.read_bytes().replace(b"{", b"[", 1))
        else:
            damage(path)
    report = omnigraph.verify(root, deep=True, quarantine=True)
    assert {(each.kind, each.loss) for each in report.findings} == {(FindingKind.CHECKSUMS, Loss.NOTHING)}
    assert omnigraph.verify(root, deep=True).is_whole
    with omnigraph.open(root, options=QUIET) as graph:
        graph.write({"Doc": [{"slug": f"n{each}"} for each in range(3)]})
        graph.optimize()
    assert omnigraph.verify(root, deep=True).found.digests > 0


def test_a_checksum_that_was_changed_is_not_taken_for_a_changed_file(root: Path) -> None:
    for path in (root / "__manifest/digests").glob("*.json"):
        document = json.loads(path.read_text())
        first = min(document["files"])
        document["files"][first] = document["files"][first][::-1]
        path.write_text(json.dumps(document))
    report = omnigraph.verify(root, deep=True)
    assert {(each.kind, each.loss) for each in report.findings} == {(FindingKind.CHECKSUMS, Loss.NOTHING)}
