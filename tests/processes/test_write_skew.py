"""Two processes that are each allowed alone, and not together: never do both succeed.

Run by itself, this file is one of the two processes: it carries out one mutation per line of its input, again while
others are in its way, and answers each with what came of it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.fast_folder import fast_folder
from tests.support.interleaving import REPOSITORY

import omnigraph
from omnigraph import ConflictError, ConstraintError, Graph
from omnigraph.failpoints import Failpoint, armed

TRIES_MAX = 50
ROUNDS = 60
# Many small graphs instead of a large one: every commit leaves a small file that later ones have to look at.
ROUNDS_OF_TORTURE, BATCHES_OF_TORTURE = 40, 25
SCHEMA = """
node Person { name: String @key  email: String? @unique  tag: String? }
node Company { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Company @card(0..1)
edge Owns: Person -> Company @card(1..)
"""


# -- one of the processes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a mutation.

    Attributes:
        done: it was published.
        refused: the rule it would have broken.
        lost: how often another's entry was there first.
    """

    done: bool
    refused: str | None
    lost: int


def work() -> None:
    opened: dict[str, Graph] = {}
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        uri, body = json.loads(line)
        if uri not in opened:
            opened = {uri: omnigraph.open(uri)}
        sys.stdout.write(json.dumps(_carried_out(opened[uri], body)) + "\n")
        sys.stdout.flush()


def _carried_out(graph: Graph, body: str) -> tuple[bool, str | None, int]:
    lost: list[None] = []
    with armed(Failpoint.PUBLISH_REFUSED, lambda: lost.append(None)):
        for _ in range(TRIES_MAX):
            try:
                result = graph.mutate(f"query q() {{ {body} }}")
            except ConstraintError as broken:
                return False, broken.message, len(lost)
            except ConflictError:
                continue
            return result.commit is not None, None, len(lost)
    raise AssertionError(f"{body} was in somebody's way {TRIES_MAX} times")


# -- the other side ---------------------------------------------------------------------------------------------------


class Racer:
    """A process that writes what it is told."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def told(self, uri: str, body: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps((uri, body)) + "\n")
        self._process.stdin.flush()

    def heard(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a racer died"
        return line

    def outcome(self) -> Outcome:
        return Outcome(*json.loads(self.heard()))


@pytest.fixture(scope="module")
def racers() -> Iterator[tuple[Racer, Racer]]:
    """The two processes, started once."""
    with ExitStack() as stack:
        started = []
        for _ in range(2):
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.processes.test_write_skew"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
            )
            stack.callback(_ended, process)
            started.append(Racer(process))
        for racer in started:
            racer.heard()
        yield started[0], started[1]


def _ended(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


@pytest.fixture
def folder() -> Iterator[Path]:
    """What is raced for is the log, not the disk."""
    with fast_folder() as made:
        yield made


Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A race, once per round.

    Attributes:
        nodes: what there is before, given the number of rounds.
        edges: likewise.
        mutations: what the two processes do in a round; who does which changes from round to round.
        both_may: whether both may succeed, one after the other.
        holds: whether what is left keeps the rule.
    """

    nodes: Callable[[int], Rows]
    edges: Callable[[int], Rows]
    mutations: Callable[[int], tuple[str, str]]
    both_may: bool
    holds: Callable[[Graph], bool]


def _people(rounds: int) -> Rows:
    return {"Person": [{"name": f"p{number}"} for number in range(rounds)] + [{"name": "hub"}]}


def _people_and_companies(rounds: int) -> Rows:
    return {**_people(rounds), "Company": [{"name": "Acme"}, {"name": "Beta"}]}


def _owners(rounds: int) -> Rows:
    return {"Owns": [{"from": f"p{number}", "to": to} for number in range(rounds) for to in ("Acme", "Beta")]}


def _nothing(_: int) -> Rows:
    return {}


def _values(graph: Graph, type_name: str, column: str) -> list[Any]:
    return graph.export_arrow(type_name, columns=[column]).read_all().column(column).to_pylist()


def _no_edge_dangles(graph: Graph) -> bool:
    people = set(_values(graph, "Person", "id"))
    return people.issuperset(_values(graph, "Knows", "src")) and people.issuperset(_values(graph, "Knows", "dst"))


def _no_value_twice(graph: Graph) -> bool:
    emails = [each for each in _values(graph, "Person", "email") if each is not None]
    return len(emails) == len(set(emails))


def _nobody_works_twice(graph: Graph) -> bool:
    workers = _values(graph, "WorksAt", "src")
    return len(workers) == len(set(workers))


def _everybody_owns_something(graph: Graph) -> bool:
    return set(_values(graph, "Owns", "src")) | {"hub"} == set(_values(graph, "Person", "id"))


SCENARIOS = {
    "an edge to a node that goes": Scenario(
        _people,
        _nothing,
        lambda number: (
            f'insert Knows {{ from: "hub", to: "p{number}" }}',
            f'delete Person where name = "p{number}"',
        ),
        both_may=True,
        holds=_no_edge_dangles,
    ),
    "one unique value for two": Scenario(
        _people,
        _nothing,
        lambda number: (
            f'insert Person {{ name: "q{number}", email: "e{number}" }}',
            f'update Person set {{ email: "e{number}" }} where name = "p{number}"',
        ),
        both_may=False,
        holds=_no_value_twice,
    ),
    "one edge too many": Scenario(
        _people_and_companies,
        _nothing,
        lambda number: (
            f'insert WorksAt {{ from: "p{number}", to: "Acme" }}',
            f'insert WorksAt {{ from: "p{number}", to: "Beta" }}',
        ),
        both_may=False,
        holds=_nobody_works_twice,
    ),
    "one edge too few": Scenario(
        _people_and_companies,
        _owners,
        lambda number: (
            f'delete Owns where from = "p{number}" and to = "Acme"',
            f'delete Owns where from = "p{number}" and to = "Beta"',
        ),
        both_may=False,
        holds=_everybody_owns_something,
    ),
}


def race(scenario: Scenario, pair: tuple[Racer, Racer], folder: Path, *, rounds: int) -> int:
    """Run the rounds of a race on a graph of its own; how often one's entry was there before the other's."""
    uri = str(Path(tempfile.mkdtemp(dir=folder)) / "graph")
    graph = omnigraph.init(uri, SCHEMA)
    graph.write(scenario.nodes(rounds), scenario.edges(rounds))
    lost = 0
    for number in range(rounds):
        one, other = pair if number % 2 else pair[::-1]
        first, second = scenario.mutations(number)
        one.told(uri, first)
        other.told(uri, second)
        outcomes = one.outcome(), other.outcome()
        done = [each for each in outcomes if each.done]
        assert done, f"round {number}: nobody succeeded: {outcomes}"
        assert scenario.both_may or len(done) == 1, f"round {number}: both succeeded: {outcomes}"
        assert all(each.done or each.refused for each in outcomes), f"round {number}: {outcomes}"
        lost += sum(each.lost for each in outcomes)
    assert scenario.holds(graph)
    return lost


@pytest.mark.parametrize("name", SCENARIOS)
def test_two_processes_cannot_break_a_rule_that_neither_breaks_alone(
    name: str, racers: tuple[Racer, Racer], folder: Path
) -> None:
    race(SCENARIOS[name], racers, folder, rounds=ROUNDS)


@pytest.mark.torture
@pytest.mark.parametrize("name", SCENARIOS)
def test_two_processes_cannot_break_a_rule_in_thousands_of_rounds(
    name: str, racers: tuple[Racer, Racer], folder: Path
) -> None:
    lost = sum(race(SCENARIOS[name], racers, folder, rounds=ROUNDS_OF_TORTURE) for _ in range(BATCHES_OF_TORTURE))
    assert lost > 0, "nobody was ever first: this was no race"


if __name__ == "__main__":
    work()
