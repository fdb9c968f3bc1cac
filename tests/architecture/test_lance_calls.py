"""Nothing in the product calls a function of Lance that moves a table's head, and only one function commits at all."""

# ruff: noqa: SIM905  (long lists of names are read as text)

import ast
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest
from lance.optimize import Compaction
from tests.architecture.sources import SOURCE, parse

TABLES = Path("storage/tables")

# Every method of a Lance dataset is in one of these two; a new release that adds one must be judged here.
COMMITS = frozenset(
    """
    add_bases add_columns alter_columns checkout_latest cleanup_old_versions commit commit_batch
    commit_existing_index_segments create_branch create_index create_scalar_index deep_clone delete delete_config_keys
    drop drop_columns drop_index initialize_mem_wal insert mem_wal_writer merge merge_index_metadata merge_insert
    migrate_manifest_paths_v2 optimize replace_field_metadata replace_schema replace_schema_metadata restore
    shallow_clone tags branches truncate_table update update_config update_field_metadata update_metadata
    update_schema_metadata
    """.split()
)
READS = frozenset(
    """
    all_files base_paths centroids checkout_version config count_rows create_index_uncommitted data_storage_version
    delta describe_indices explain_cleanup_old_versions filter fragment_ids from_pydantic_model get_fragment
    get_fragments get_ivf_model get_transactions get_version has_index has_stable_row_ids head index_statistics
    initial_storage_options io_stats_incremental io_stats_snapshot join join_asof lance_schema latest_storage_options
    latest_version list_indices max_field_id mem_wal_index_details merge_existing_index_segments metadata
    new_file_session partition_expression prewarm_index read_blob_ranges read_blobs read_transaction remap_row_addrs
    sample scanner schema schema_metadata session slice sort_by sql stats storage_options_accessor take take_blobs
    to_batches to_pandas to_table tracked_files uri validate version version_refs versions
    """.split()
)
# Functions that commit and are no methods of a dataset.
ALSO_COMMIT = frozenset({"write_dataset", "compact_files", "optimize_indices", "execute", "commit_transaction"})
# Names that mean nothing else, so nobody outside the table port may use them even on an object that was handed over.
ONLY_LANCE = (COMMITS | ALSO_COMMIT | {"commit_detached", "write_fragments", "create_index_uncommitted"}) - frozenset(
    """
    commit delete drop insert merge optimize restore tags branches update execute add_columns drop_columns
    """.split()
)
# (file, function, call): the whole of what is allowed.
ALLOWED = frozenset(
    {
        (TABLES / "detached.py", "commit_detached", "commit"),  # detached versions, and nothing else
        (TABLES / "tables.py", "create", "write_dataset"),  # the first, empty version of a table
        (TABLES / "table.py", "filter_rows", "write_dataset"),  # into memory, see below
    }
)


def violations(root: Path) -> list[str]:
    """What in the sources below `root` is not allowed."""
    return [found for path in sorted(root.rglob("*.py")) for found in violations_in(path, path.relative_to(root))]


def violations_in(path: Path, relative: Path) -> list[str]:
    tree = parse(path)
    in_port = relative.is_relative_to(TABLES)
    return [
        f"{relative}:{line}: {what}"
        for line, what in (
            *_imports(tree, in_port=in_port),
            *_calls(tree, relative, in_port=in_port),
            *_disk_writes_of_the_filter(tree, relative),
        )
    ]


def _imports(tree: ast.AST, *, in_port: bool) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if in_port:
                for alias in node.names:
                    # Imported under another name, a call would not be recognised.
                    if alias.name in COMMITS | ALSO_COMMIT and (node.module or "").startswith("lance"):
                        yield node.lineno, f"imports {alias.name} by name"
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            names = [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
        if not in_port and any(name == "lance" or name.startswith("lance.") for name in names):
            yield getattr(node, "lineno", 0), "imports lance"


def _calls(tree: ast.AST, relative: Path, *, in_port: bool) -> Iterator[tuple[int, str]]:
    forbidden = COMMITS | ALSO_COMMIT if in_port else ONLY_LANCE
    for function, node in _with_function(tree):
        name = _used(node)
        if name in forbidden and (relative, function, name) not in ALLOWED:
            yield getattr(node, "lineno", 0), f"{function} uses {name}"


def _disk_writes_of_the_filter(tree: ast.AST, relative: Path) -> Iterator[tuple[int, str]]:
    if relative != TABLES / "table.py":
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "write_dataset":
            target = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(target, ast.Constant) and target.value == "memory://"):
                yield node.lineno, "writes anywhere but into memory"


def _with_function(tree: ast.AST, function: str = "<module>") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield inner, node
        yield from _with_function(node, inner)


def _used(node: ast.AST) -> str | None:
    """The attribute that is looked up, the function that is called by name, or the name given to `getattr`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in {"getattr", "methodcaller", "attrgetter"}:
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            return next((name for name in names if isinstance(name, str)), None)
        return node.func.id
    return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_the_product_calls_nothing_that_moves_a_head() -> None:
    assert violations(SOURCE) == []


def test_every_method_of_a_lance_dataset_is_known_to_read_or_to_commit() -> None:
    methods = {name for name, _ in inspect.getmembers(lance.LanceDataset) if not name.startswith("_")}
    # What the dataset inherits from Arrow reads; only Lance's own methods can commit.
    assert methods - COMMITS - READS == set()
    assert not COMMITS & READS


def test_the_functions_said_to_commit_exist() -> None:
    assert {name for name in COMMITS if not hasattr(lance.LanceDataset, name)} == set()
    assert hasattr(lance, "write_dataset")
    assert hasattr(Compaction, "execute")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("copy") / "omnigraph"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


PLANTED_IN_THE_PORT = (
    *(f"def planted(handle):\n    handle.{name}('x')\n" for name in sorted(COMMITS)),
    *(f"def planted(handle):\n    getattr(handle, '{name}')('x')\n" for name in sorted(COMMITS)),
    "import lance\n\ndef planted(rows):\n    lance.write_dataset(rows, 'x')\n",
    "from lance import write_dataset\n",
    "from lance import write_dataset as staged\n",
    "def planted(handle):\n    handle.optimize.compact_files()\n",
    "def planted(handle):\n    handle.optimize.optimize_indices()\n",
    "def planted(handle, rows):\n    handle.merge_insert('id').when_matched_update_all().execute(rows)\n",
    "def planted(builder, rows):\n    builder.execute(rows)\n",
    "from lance.optimize import Compaction\n\ndef planted(handle):\n    Compaction.execute(handle, {})\n",
    "from lance.optimize import Compaction\n\ndef planted(handle, done):\n    Compaction.commit(handle, done)\n",
    "from lance import LanceDataset\n\ndef planted(handle, what):\n    LanceDataset.commit(handle, what)\n",
    "def planted(handle):\n    handle.tags.create('x', 1)\n",
    "def planted(handle):\n    run = handle.delete\n    run('true')\n",
    "class Planted:\n    def commit(self, handle):\n        handle.restore()\n",
)
PLANTED_ELSEWHERE = (
    "import lance\n",
    "import lance.fragment\n",
    "from lance import LanceDataset\n",
    "from lance.commit import CommitConflictError\n",
    "import importlib\n\nlance = importlib.import_module('lance')\n",
    "lance = __import__('lance')\n",
    "def planted(handle):\n    import lance\n",
    "def planted(handle):\n    handle.create_scalar_index('id', 'BTREE')\n",
    "def planted(handle):\n    handle.cleanup_old_versions()\n",
    "def planted(handle):\n    handle.checkout_latest()\n",
    "def planted(handle):\n    handle.create_branch('x')\n",
    "def planted(handle, rows):\n    handle.merge_insert('id')\n",
    "def planted(handle):\n    getattr(handle, 'update_config')({})\n",
    "from omnigraph.storage.tables import detached\n\ndef planted(h, what):\n    detached.commit_detached(h, what)\n",
    "from omnigraph.storage.tables.detached import commit_detached\n\ncommit_detached(handle, what)\n",
)


@pytest.mark.parametrize("planted", PLANTED_IN_THE_PORT)
def test_a_call_planted_in_the_table_port_is_found(copied: Path, planted: str) -> None:
    relative = TABLES / "planted.py"
    (copied / relative).write_text(planted, encoding="utf-8")
    assert violations_in(copied / relative, relative)


@pytest.mark.parametrize("planted", PLANTED_ELSEWHERE)
def test_a_call_planted_anywhere_else_is_found(copied: Path, planted: str) -> None:
    relative = Path("transaction/planted.py")
    (copied / relative).write_text(planted, encoding="utf-8")
    assert violations_in(copied / relative, relative)


def test_a_call_planted_beside_an_allowed_one_is_found(tmp_path: Path) -> None:
    relative = TABLES / "detached.py"
    planted = tmp_path / "detached.py"
    allowed = (SOURCE / relative).read_text(encoding="utf-8")
    planted.write_text(
        allowed + "\n\ndef other(handle, what):\n    LanceDataset.commit(handle, what)\n", encoding="utf-8"
    )
    assert violations_in(planted, relative)


def test_a_filter_that_writes_to_disk_is_found(tmp_path: Path) -> None:
    relative = TABLES / "table.py"
    planted = tmp_path / "table.py"
    changed = (SOURCE / relative).read_text(encoding="utf-8").replace("memory://", "somewhere")
    planted.write_text(changed, encoding="utf-8")
    assert violations_in(planted, relative)


def test_the_walker_reaches_planted_files_in_any_folder(tmp_path: Path) -> None:
    planted = tmp_path / "server" / "deep" / "planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text("import lance\n", encoding="utf-8")
    assert violations(tmp_path) == [f"{Path('server/deep/planted.py')}:1: imports lance"]
