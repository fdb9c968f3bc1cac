"""No test is cut short before a process that it waits for, and how long an example takes decides nothing."""

import ast
import tomllib
from functools import cache
from pathlib import Path

from tests.architecture.sources import parse

TESTS = Path(__file__).parents[1]
LIMIT_S: int = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["timeout"]
WAITS = frozenset({"run", "communicate", "wait", "call", "check_call", "check_output", "result", "wait_for"})

Functions = dict[str, ast.FunctionDef]


@cache
def files() -> list[tuple[Path, ast.Module]]:
    return [(file, parse(file)) for file in sorted(TESTS.rglob("*.py"))]


def waits(function: ast.FunctionDef, others: Functions, seen: frozenset[str] = frozenset()) -> float:
    """How long a function may wait for others: what it says itself, and what functions of its file do that it uses."""
    total = 0.0
    used = {argument.arg for argument in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            total += sum(
                float(keyword.value.value)
                for keyword in node.keywords
                if keyword.arg == "timeout"
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, int | float)
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            used.add(node.func.id)
    deeper = (used & others.keys()) - seen - {function.name}
    return total + sum(waits(others[name], others, seen | deeper | {function.name}) for name in sorted(deeper))


def limit_of(function: ast.FunctionDef) -> float:
    """The time limit of a test: its own mark, or that of all."""
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.timeout":
            [seconds] = mark.args
            assert isinstance(seconds, ast.Constant)
            assert isinstance(seconds.value, int)
            return seconds.value
    return LIMIT_S


def test_a_test_has_longer_than_the_processes_it_waits_for() -> None:
    too_short = []
    for file, module in files():
        functions = {node.name: node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
        for name, function in functions.items():
            if name.startswith("test_") and (seconds := waits(function, functions)) >= limit_of(function):
                too_short.append(f"{file.relative_to(TESTS)}::{name}: waits {seconds} s")
    assert too_short == []


def test_hypothesis_has_one_profile_without_a_deadline() -> None:
    """It stands in `conftest.py`: with a deadline of its own, a test would fail on a busy machine."""
    deadlines = [
        f"{file.relative_to(TESTS)}:{keyword.value.lineno}"
        for file, module in files()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and file != TESTS / "conftest.py"
        for keyword in node.keywords
        if keyword.arg == "deadline" or ast.unparse(node.func).endswith("register_profile")
    ]
    assert deadlines == []
