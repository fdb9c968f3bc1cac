"""Reads in processes of their own: the first answer, and the memory that answers take."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.report import Figure, compared

_WORKER, _MEMORY = "--worker", "--memory"

_COLD = {
    "point lookup": ("$p.age", "p.age", "", ""),
    "two hops, people counted": (
        "count(distinct $r) as n",
        "count(distinct r)",
        "$p knows $q $q knows $r",
        "-[:Knows]->(q:Person)-[:Knows]->(r:Person)",
    ),
}


def first_answers(folder: Path, keys: Sequence[str]) -> Iterable[Figure]:
    """The first answer of a process of its own, from opening on; imports and the interpreter's start do not count."""
    for what, (returned, their_returned, pattern, their_pattern) in _COLD.items():
        ours = f"query q($k: String) {{ match {{ $p: Person {{ name: $k }} {pattern} }} return {{ {returned} }} }}"
        theirs = f"match (p:Person {{name: $k}}){their_pattern} return {their_returned}"
        found: dict[str, list[dict[str, Any]]] = {"ours": [], "ladybug": []}
        for key in keys:
            for side, text in (("ours", ours), ("ladybug", theirs)):
                found[side].append(_first_answer(side, folder, text, key))
        for one, other in zip(found["ours"], found["ladybug"], strict=True):
            assert one["answer"] == other["answer"], f"{what}: {one['answer']} and {other['answer']}"
        times = {side: statistics.median(each["ms"] for each in answers) for side, answers in found.items()}
        yield compared(
            f"{what}, first answer of a process", times["ours"], "ms", against="ladybug", other=times["ladybug"]
        )


def memory(folder: Path, key: str) -> Iterable[Figure]:
    """The most memory that a process of its own has held, beyond what it had after importing the product."""
    held = {side: _said(_MEMORY, side, str(folder), key)["MiB"] for side in ("ours", "ladybug")}
    yield compared(
        "most memory of a process that asks", held["ours"], "MiB", against="ladybug", other=max(held["ladybug"], 0.1)
    )


def _first_answer(side: str, folder: Path, text: str, key: str) -> dict[str, Any]:
    return _said(_WORKER, side, str(folder), text, key)


def _said(*words: str) -> dict[str, Any]:
    """What a process of this module prints last."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.apart.reads", *words], check=False, capture_output=True, text=True
    )
    if ran.returncode:
        raise RuntimeError(f"{words}: {ran.stderr}")
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


_ASKED = (
    (
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.city } }",
        "match (p:Person {name: $k})-[:Knows]->(q:Person) return q.city",
    ),
    (
        "query q($k: String) { match { $p: Person $p.age > 40 } return { $p.city, avg($p.score) as a } }",
        "match (p:Person) where p.age > 40 and $k <> '' return p.city, avg(p.score)",
    ),
    (
        "query q($k: String) { match { $a: Person $a $e: knows $b $e.since > 2015 } "
        "return { $b.city as c, count(*) as n } order { n desc } limit 10 }",
        "match (a:Person)-[e:Knows]->(b:Person) where e.since > 2015 and $k <> '' "
        "return b.city as c, count(*) as n order by n desc, c limit 10",
    ),
    (
        "query q($k: String) { match { $a: Person $a knows $b $b knows $c } return { count(*) as n } }",
        "match (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) where $k <> '' return count(*)",
    ),
)


def _hold(side: str, folder: str, key: str) -> None:
    """One process that asks everything once: prints how much memory that took."""
    import_module("omnigraph.api.open" if side == "ours" else "ladybug")
    before = _most_bytes()
    if side == "ours":
        graph = omnigraph.open(f"{folder}/ours", read_only=True)
        for ours, _ in _ASKED:
            graph.query(ours, {"k": key}).to_pylist()
    else:
        ladybug = import_module("ladybug")
        connection = ladybug.Connection(ladybug.Database(f"{folder}/ladybug", read_only=True))
        for _, theirs in _ASKED:
            connection.execute(theirs, {"k": key}).get_all()
    print(json.dumps({"MiB": (_most_bytes() - before) / 2**20}))


def _most_bytes() -> int:
    """The most memory this process has held; not what it took over from its parent, as `getrusage` would have it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _work(side: str, folder: str, text: str, key: str) -> None:
    """One process that asks one question: prints its answer and how long it took."""
    if side == "ours":
        import_module("omnigraph.api.open")
        started = time.perf_counter()
        answer = (
            omnigraph.open(f"{folder}/ours", read_only=True).query(text, {"k": key}).to_arrow().column(0).to_pylist()
        )
    else:
        ladybug = import_module("ladybug")
        started = time.perf_counter()
        connection = ladybug.Connection(ladybug.Database(f"{folder}/ladybug", read_only=True))
        answer = [row[0] for row in connection.execute(text, {"k": key}).get_all()]
    print(json.dumps({"ms": (time.perf_counter() - started) * 1e3, "answer": answer}))


if __name__ == "__main__":
    if sys.argv[1:2] == [_WORKER]:
        _work(*sys.argv[2:])
    elif sys.argv[1:2] == [_MEMORY]:
        _hold(*sys.argv[2:])
