"""The one shape of all benchmarks: arguments, machine, table and JSON document.

A benchmark is a module with a function that measures and returns figures, and one line at its end:

    if __name__ == "__main__":
        run("compile", measure)

`python -m benchmarks.compile` prints a table, `--quick` measures less (within 45 seconds on two cores), `--json` prints
one document as the last thing. A missed bar is said plainly and is no failure of the program: the exit code is 0.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure.

    Attributes:
        quick: whether the whole benchmark must end within 45 seconds.
    """

    quick: bool

    def pick(self, *, full: int, quick: int) -> int:
        """The size for this run."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    Attributes:
        work: what was done, in words.
        value: the number.
        unit: what it counts.
        against: what it is compared with, in words; None where it stands alone.
        ratio: how many times the other it is; None where it stands alone.
        bar: what we want, in words, as in `at most 2 ms`; None where nothing was promised.
        met: whether the bar was met; None without one.
    """

    work: str
    value: float
    unit: str
    against: str | None = None
    ratio: float | None = None
    bar: str | None = None
    met: bool | None = None


def alone(work: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None) -> Figure:
    """A figure that is judged by its own value, or not at all."""
    bar, met = _judge(value, unit, at_most=at_most, at_least=at_least)
    return Figure(work, value, unit, bar=bar, met=met)


def compared(
    work: str,
    value: float,
    unit: str,
    *,
    against: str,
    other: float,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """A figure that is judged by its ratio to another one.

    Args:
        work: what was done.
        value: the number.
        unit: what it counts, in both.
        against: what the other number is.
        other: the other number.
        at_most: the greatest good ratio.
        at_least: the least good ratio.
    """
    if not other:
        raise ValueError(f"{against}: nothing can be compared with zero")
    ratio = value / other
    bar, met = _judge(ratio, "×", at_most=at_most, at_least=at_least)
    return Figure(work, value, unit, f"{against} ({_number(other)} {unit})", ratio, bar, met)


def _judge(value: float, unit: str, *, at_most: float | None, at_least: float | None) -> tuple[str | None, bool | None]:
    if at_most is not None:
        return f"at most {_number(at_most)} {unit}", value <= at_most
    if at_least is not None:
        return f"at least {_number(at_least)} {unit}", value >= at_least
    return None, None


def seconds_each(
    work: Callable[[], object], *, times: int, rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The median over `rounds` of the mean time of `times` calls; the first call is not counted.

    Args:
        work: what is measured.
        times: calls in a round.
        rounds: how many rounds.
        clock: seconds; `time.process_time` where only the processor matters and others use it too.

    Returns:
        Seconds for one call.
    """
    work()
    return statistics.median(_round(work, times, clock) for _ in range(rounds))


def _round(work: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(times):
        work()
    return (clock() - started) / times


def machine() -> dict[str, str | int]:
    """What the figures were measured on; nothing that tells whose machine it is."""
    return {
        "cores": os.cpu_count() or 1,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
    }


def run(name: str, measure: Callable[[Scale], Iterable[Figure]], arguments: Sequence[str] | None = None) -> None:
    """Measure and print; the whole `main` of a benchmark.

    Args:
        name: the benchmark's name.
        measure: does the work; figures are shown as they come.
        arguments: the command line, if not the process's own.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument("--quick", action="store_true", help="measure less: within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON document as the last thing")
    chosen = parser.parse_args(arguments)

    described = machine()
    print(f"{name}: {described['cores']} cores, {described['python']}, {described['platform']}")
    figures = []
    for figure in measure(Scale(quick=chosen.quick)):
        figures.append(figure)
        print(_line(figure))
        sys.stdout.flush()
    missed = sum(figure.met is False for figure in figures)
    judged = sum(figure.met is not None for figure in figures)
    print(f"{judged - missed} of {judged} bars met" + (f"; {missed} MISSED" if missed else ""))
    if chosen.json:
        print(document(name, figures))


def document(name: str, figures: Sequence[Figure]) -> str:
    """The JSON form of a whole run, on one line."""
    return json.dumps({"name": name, "machine": machine(), "figures": [asdict(figure) for figure in figures]})


def _line(figure: Figure) -> str:
    parts = [f"  {figure.work:<58} {_number(figure.value):>10} {figure.unit:<8}"]
    if figure.against is not None and figure.ratio is not None:
        parts.append(f"{_number(figure.ratio)} × {figure.against}")
    if figure.bar is not None:
        parts.append(f"{figure.bar}: {'met' if figure.met else 'MISSED'}")
    return "  ".join(parts).rstrip()


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1_000 else f"{value:,.0f}"
