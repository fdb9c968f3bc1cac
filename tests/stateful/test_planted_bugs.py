"""Every oracle must turn red when the bug it is there for is in the code.

Each bug is one edit of the sources, planted in a copy of them; the tests named with it are run against the copy, in a
process of their own, and must fail. Without the edit the same tests pass on the copy.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What pytest says when tests failed, and when they passed; anything else is trouble of another kind.
PASSED, FAILED = 0, 1

WRITE_CUT = ("tests/faults/test_write_cut.py",)
LOST_ANSWER = ("tests/faults/test_lost_answers.py",)
RECOVERY = ("tests/faults/test_recovery.py",)
UNDO = ("tests/faults/test_recovery_undo.py",)
PROCESSES = ("tests/processes/test_many_processes.py", "-k", "local_disk")
MODEL = ("tests/stateful/test_graph_machine.py",)
INTERLEAVED = ("tests/stateful/test_interleavings.py",)
MATRIX = ("tests/conflicts/test_matrix.py",)
FINDER = ("tests/unit/execution/test_row_index.py",)
QUERIES = ("tests/stateful/test_queries_against_brute_force.py",)
WARM = ("tests/stateful/test_one_handle_many_branches.py",)
COLUMNS = ("tests/unit/execution/test_columns.py",)
SEARCHES = ("tests/contract/test_search.py",)
ANALYZERS = ("tests/contract/test_analyzers.py",)
DAGS = ("tests/stateful/test_branch_dags.py",)
CRISS_CROSS = ("tests/contract/test_merge_criss_cross.py", "-k", "old_value_again")
COUNTS = ("tests/cost/test_store_requests.py", "tests/cost/test_rarer_acts.py")


@dataclass(frozen=True, slots=True)
class Bug:
    """One edit.

    Attributes:
        name: what is wrong then.
        file: below `src/omnigraph`.
        old: the text that is replaced; it occurs once.
        new: what stands there instead.
        found_by: the selections of tests each of which must fail.
    """

    name: str
    file: str
    old: str
    new: str
    found_by: tuple[tuple[str, ...], ...]

    def plant(self, sources: Path) -> None:
        file = sources / "omnigraph" / self.file
        text = file.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file} has changed: plant '{self.name}' anew"
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")


BUGS = [
    Bug(
        "of several common ancestors one is picked",
        "branch/merge/base.py",
        "    places = {commit: place for place, commit in enumerate(best)}",
        "    places = {commit: place for place, commit in enumerate(best[:1])}\n    best = best[:1]",
        (CRISS_CROSS, DAGS),
    ),
    Bug(
        "an entry replaces the one that is there",
        "transaction/log.py",
        "lambda: self._store.put_if_absent(path, body)",
        "lambda: self._store.put(path, body)",
        (MATRIX, PROCESSES, INTERLEAVED, MODEL),
    ),
    Bug(
        "nothing ever clashes",
        "transaction/conflicts.py",
        "return Clashing(tuple(found)) if found else Clear()",
        "return Clear()",
        (MATRIX, PROCESSES, INTERLEAVED, MODEL),
    ),
    Bug(
        "a rebase forgets the rows it deletes",
        "storage/tables/rebase.py",
        "removed = _addresses_in(onto, base, effect.removed)",
        "removed = NO_ADDRESSES",
        (MATRIX, INTERLEAVED),
    ),
    Bug(
        "a head once known is taken for the newest",
        "transaction/log_reader.py",
        "        if known is not None:\n            newest = self._newest_from(branch, known)\n",
        "        if known is not None:\n            newest = known\n",
        (MATRIX, MODEL, PROCESSES),
    ),
    Bug(
        "the footprint leaves out what was written",
        "transaction/write_set/stage.py",
        "    return written | tokens(TokenKind.EXISTS, appeared_or_gone)\n",
        "    return frozenset()\n",
        (MATRIX, INTERLEAVED),
    ),
    Bug(
        "the intent is cleared before the write is published",
        "transaction/write.py",
        "                reached(Failpoint.WRITE_INTENT_COMPLETED)\n",
        "                noted.clear()\n                reached(Failpoint.WRITE_INTENT_COMPLETED)\n",
        (MODEL, RECOVERY),
    ),
    Bug(
        "a lost answer is taken for a success",
        "storage/conditional_put.py",
        "        except OutcomeUnknown as fault:\n            lost = fault\n",
        "        except OutcomeUnknown:\n            return None\n",
        (LOST_ANSWER, MODEL),
    ),
    Bug(
        "a lost answer is taken for a refusal",
        "storage/conditional_put.py",
        "        except OutcomeUnknown as fault:\n            lost = fault\n",
        "        except OutcomeUnknown:\n            raise\n",
        (LOST_ANSWER,),
    ),
    Bug(
        "a commit is acknowledged before it is put",
        "transaction/log.py",
        "            found = self._put_or_find(entry, body)\n",
        "            found = None if entry.number % 7 == 0 else self._put_or_find(entry, body)\n",
        (PROCESSES, MODEL),
    ),
    Bug(
        "an undo deletes before it declares dead",
        "transaction/recovery.py",
        "    if not _audited(context, facts, RecoveryKind.UNDONE, ended_at=facts.intent.tables):\n"
        "        return False\n    _delete_staged(context, facts)\n    return True\n",
        "    _delete_staged(context, facts)\n"
        "    return _audited(context, facts, RecoveryKind.UNDONE, ended_at=facts.intent.tables)\n",
        (UNDO,),
    ),
    Bug(
        "an undo declares nobody dead",
        "transaction/recovery.py",
        "aborted=(intent.id,) if kind is RecoveryKind.UNDONE and not declared else (),",
        "aborted=(),",
        (UNDO,),
    ),
    Bug(
        "a withdrawn attempt is not declared dead",
        "transaction/publish.py",
        "aborted=(*draft.aborted, *(attempt.intent for attempt in draft.withdrawn)),",
        "aborted=draft.aborted,",
        (("tests/faults/test_finished_by_others.py",),),
    ),
    Bug(
        "a table becomes visible before the others are staged",
        "transaction/write_set/stage.py",
        "{key: table for key, table in tables.items() if table.pin != table.base or key in brought}",
        "dict(list(tables.items())[:1])",
        (WRITE_CUT, MODEL, PROCESSES),
    ),
    Bug(
        "what was interrupted is left as it is",
        "transaction/recovery.py",
        "            return _finished(context, completed, facts)\n",
        "            return True\n",
        (MODEL, RECOVERY),
    ),
    Bug(
        "who keeps track of rows forgets that some are gone",
        "execution/row_index.py",
        "            self.gone[address] = step\n",
        "",
        (FINDER,),
    ),
    Bug(
        "who keeps track of rows tells of a version what only a later one has",
        "execution/row_index.py",
        "            if when <= step:\n",
        "            if True:\n",
        (FINDER,),
    ),
    Bug(
        "places known in one version are taken for those of another",
        "storage/tables/stage_rows.py",
        "    if known is not None and known.version == base.version:\n",
        "    if known is not None:\n",
        (FINDER,),
    ),
    Bug(
        "a literal meets a column of 32 bits in 64",
        "execution/comparison.py",
        "    if pa.types.is_floating(type_):\n",
        "    if pa.types.is_float64(type_):\n",
        (QUERIES,),
    ),
    Bug(
        "a list of literals meets a column of 32 bits in 64",
        "execution/comparison.py",
        "    return bool(pa.types.is_float32(values.type))\n",
        "    return False\n",
        (QUERIES,),
    ),
    Bug(
        "a node with an edge to itself is lost below the least number of hops",
        "execution/traversal.py",
        "            if hop == least:\n",
        "            if hop == least == 1:\n",
        (QUERIES,),
    ),
    Bug(
        "the edge to itself is looked for at the wrong end",
        "execution/traversal.py",
        "looped[frontier_rows] if loops_at_start else loops",
        "loops",
        (QUERIES,),
    ),
    Bug(
        "a path that is one hop too short has no edge from its end to itself",
        "execution/traversal.py",
        "if missing > 1 or (missing == 1 and not _has_loop(access, end)):",
        "if missing > 0:",
        (QUERIES,),
    ),
    Bug(
        "paths to many nodes are not made longer by an edge from their end to itself",
        "execution/operators/shortest.py",
        "is_near = found.distances == self._least - 1\n",
        "is_near = found.distances == 0\n",
        (QUERIES,),
    ),
    Bug(
        "the least number of hops does not count",
        "execution/traversal.py",
        "        if hop >= least:\n",
        "        if hop > 0:\n",
        (QUERIES,),
    ),
    Bug(
        "an undirected edge leads one way",
        "execution/adjacency.py",
        "edges.where(edges.sources != edges.targets)",
        "edges.where(edges.sources == edges.targets)",
        (QUERIES,),
    ),
    Bug(
        "what is unknown is taken for true",
        "execution/arrays.py",
        "condition.fill_null(False)",
        "condition.fill_null(True)",
        (QUERIES,),
    ),
    Bug(
        "a list that is null has no element, for sure",
        "execution/comparison.py",
        "    return found if nulls is None else to_arrow(to_numpy(found), nulls=nulls)\n",
        "    return found\n",
        (QUERIES,),
    ),
    Bug(
        "a negation keeps what it should drop",
        "execution/operators/subqueries.py",
        "found if self._wanted else ~found",
        "found",
        (QUERIES,),
    ),
    Bug(
        "an optional part that finds nothing loses its row",
        "execution/operators/subqueries.py",
        "            if alone.size:\n",
        "            if False:\n",
        (QUERIES,),
    ),
    Bug(
        "a lookup takes the numbers of another version for its own",
        "execution/column.py",
        "        if ordinal >= numbering.size or numbering.is_dead(ordinal):\n",
        "        if ordinal < numbering.size and numbering.is_dead(ordinal):\n",
        (WARM,),
    ),
    Bug(
        "a lookup finds rows that were deleted",
        "execution/column.py",
        "        if ordinal >= numbering.size or numbering.is_dead(ordinal):\n",
        "        if ordinal >= numbering.size:\n",
        (WARM,),
    ),
    Bug(
        "a version that is opened again is taken for numbered as before",
        "execution/numbering.py",
        "return self.pin.table, self.pin.version, self.serial",
        "return self.pin.table, self.pin.version, 0",
        (COLUMNS,),
    ),
    Bug(
        "a column grows where a run has begun before its end",
        "execution/column.py",
        "    if missing and missing[0].first < len(before.array):\n",
        "    if False:\n",
        (COLUMNS,),
    ),
    Bug(
        "words that are dropped leave no gap in phrases",
        "execution/search/tokenizer.py",
        "tokens.positions[kept])",
        "np.arange(len(owners), dtype=np.int32))",
        (SEARCHES, ANALYZERS),
    ),
    Bug(
        "accents stay",
        "execution/search/tokenizer.py",
        "word if word.isascii() else _fold(word)",
        "word",
        (SEARCHES, ANALYZERS),
    ),
    Bug(
        "words of one analyzer are looked up among those of another",
        "execution/versions.py",
        'self._derive(f"words by {analyzer}", columns',
        'self._derive("words", columns',
        (ANALYZERS,),
    ),
    Bug(
        "a write looks at the head twice",
        "transaction/write.py",
        "        base = self.context.log.live_head(self.draft.branch, tentative=True)\n",
        "        self.context.log.live_head(self.draft.branch)\n"
        "        base = self.context.log.live_head(self.draft.branch, tentative=True)\n",
        (COUNTS,),
    ),
    Bug(
        "a write is redone when it should be refused",
        "transaction/write.py",
        "if not self.operation.redoable and not isinstance(lost, StageAgainError):\n",
        "if False:\n",
        (MATRIX,),
    ),
]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    copy = tmp_path / "src"
    shutil.copytree(ROOT / "src" / "omnigraph", copy / "omnigraph", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(sources: Path, selection: tuple[str, ...]) -> tuple[int, str]:
    """Run tests against a copy of the sources; how pytest ended, and what it said last."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import omnigraph; print(omnigraph.__file__)"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert where.stdout.startswith(str(sources)), "the copy is not what is tested"
    # Shrinking a failure takes long and nobody reads it here: one failing test is enough.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout", "600", *selection],
        env={**environment, "OMNIGRAPH_TESTS_DO_NOT_SHRINK": "1", "OMNIGRAPH_TESTS_EXAMPLES": "400"},
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    return done.returncode, done.stdout[-3_000:] + done.stderr[-1_000:]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_has_its_place_in_the_sources(bug: Bug) -> None:
    text = (ROOT / "src" / "omnigraph" / bug.file).read_text(encoding="utf-8")
    planted = text.replace(bug.old, bug.new)

    assert text.count(bug.old) == 1
    assert planted != text
    compile(planted, bug.file, "exec")


@pytest.mark.torture
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("selection", sorted({each for bug in BUGS for each in bug.found_by}), ids=lambda each: each[0])
def test_the_tests_pass_on_a_copy_without_a_bug(selection: tuple[str, ...], sources: Path) -> None:
    code, said = run(sources, selection)
    assert code == PASSED, said


@pytest.mark.torture
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("bug", "selection"),
    [
        pytest.param(bug, selection, id=f"{bug.name}: {Path(selection[0]).stem}")
        for bug in BUGS
        for selection in bug.found_by
    ],
)
def test_a_planted_bug_turns_the_tests_red(bug: Bug, selection: tuple[str, ...], sources: Path) -> None:
    bug.plant(sources)
    code, said = run(sources, selection)
    assert code == FAILED, f"{bug.name} was not found by {' '.join(selection)}:\n{said}"
