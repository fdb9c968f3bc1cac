"""The public names of the package, and what importing it costs."""

import subprocess
import sys

import pytest

import omnigraph

NAMES = {
    "AllowedBase", "AlreadyExistsError", "Blame", "Blob", "BlobScope", "BlobSourceError", "Branches", "ChangeGapError",
    "ChangeRefusedError", "ClockError", "Commit", "ConflictError", "ConstraintError", "Diff", "EngineStats",
    "EntityChange", "EntityEvent", "ExternalBlobPolicy", "FeedPage", "FormatError", "Graph", "GraphError",
    "InternalError", "InvalidRequestError", "LimitError", "LoadProgress", "LoadResult", "Maintenance",
    "MaintenanceReport", "MergeConflict", "MergeConflictError", "MergeResult", "Mode", "MutationResult",
    "Neighbourhood", "NotFoundError", "OpenOptions", "OptimizeReport", "OutcomeUnknownError", "ParseError",
    "PermissionDeniedError", "Point", "PreconditionError", "PreparedQuery", "QueryLimits", "ReclaimedError",
    "RemoteGraph", "Result", "ResultStream", "RevertConflict", "RevertConflictError", "RevertResult", "Snapshot", "Tag",
    "UnavailableError", "VerifyReport", "WriteOptions", "WriteResult", "connect", "init", "open", "verify",
}  # fmt: skip
HEAVY = ("lance", "pyarrow", "numpy", "obstore", "re2", "pyspark", "pandas", "polars", "httpx", "fastapi")


def test_these_names_are_public_and_no_others() -> None:
    assert set(omnigraph.__all__) == NAMES
    assert set(dir(omnigraph)) >= NAMES
    for name in NAMES:
        assert getattr(omnigraph, name).__name__ == name


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'omnigraph' has no attribute 'nothing'"):
        _ = omnigraph.nothing  # type: ignore[attr-defined]  # that there is none is tested


def test_importing_the_package_imports_nothing_heavy() -> None:
    script = f"import sys, omnigraph; print([name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


def test_the_names_type_checkers_see_are_the_same() -> None:
    source = omnigraph.__file__
    assert source is not None
    with open(source + "i", encoding="utf-8") as stub:  # noqa: PTH123  (beside the package's own file)
        declared = {line.rsplit(" as ", 1)[1].strip() for line in stub if " as " in line}
    assert declared == NAMES
