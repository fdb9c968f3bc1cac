"""Find stored queries in files and check them against a schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omnigraph.cluster import layout
from omnigraph.cluster.declared import QueryFiles
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.files import read_file, resolve_inside
from omnigraph.errors import GraphError
from omnigraph.language.query import lint, parse
from omnigraph.model.schema import Schema

_ENDING = ".gq"


@dataclass(frozen=True, slots=True)
class FoundQuery:
    """Query found in a file."""

    name: str  # name the query is stored under
    file: str  # path as the configuration names it
    body: bytes  # content of the whole file


def find_queries(folder: Path, declared: QueryFiles, *, path: str, diagnostics: Diagnostics) -> dict[str, FoundQuery]:
    """Return the queries that a configuration declares for a graph, sorted by name."""
    found: dict[str, FoundQuery] = {}
    for wanted, file in _files(folder, declared, path, diagnostics):
        body = read_file(folder, file, code="query_file_missing", path=path, diagnostics=diagnostics)
        if body is None:
            continue
        try:
            names = [query.name for query in parse(body, name=file).queries]
        except GraphError as mistake:
            diagnostics.error("query_parse_error", path, f"{file}: {mistake}")
            continue
        if wanted is not None and wanted not in names:
            diagnostics.error("query_key_mismatch", f"{path}.{wanted}", f"{file} has no query '{wanted}'")
        for name in names if wanted is None else [known for known in names if known == wanted]:
            if name in found:
                message = f"the query '{name}' of {file} is already in {found[name].file}"
                diagnostics.error("duplicate_query_name", path, message)
            elif not layout.is_query_name(name):
                diagnostics.error("invalid_resource_id", path, f"invalid query name '{name}' in {file}")
            else:
                found[name] = FoundQuery(name, file, body)
    return dict(sorted(found.items()))


def check_queries(
    queries: dict[str, FoundQuery], schema: Schema | None, *, graph: str, diagnostics: Diagnostics
) -> None:
    """Check queries against the schema of their graph; warn if there is no schema."""
    if schema is None:
        if queries:
            message = "the queries were not checked: there is no schema to check them against"
            diagnostics.warning("query_typecheck_skipped", f"graphs.{graph}.queries", message)
        return
    for name, error in find_query_errors({query.name: query.body.decode() for query in queries.values()}, schema):
        diagnostics.error("query_typecheck_error", f"query.{graph}.{name}", error)


def find_query_errors(texts: dict[str, str], schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the name and the error of every query that does not fit a schema."""
    reports = {text: lint(text, schema) for text in dict.fromkeys(texts.values())}
    for name, text in texts.items():
        report = reports[text]
        for result in report.results:
            if result.name == name and result.error is not None:
                yield name, result.error
        if not report.results:
            yield from ((name, finding.message) for finding in report.findings)


def _files(folder: Path, declared: QueryFiles, path: str, diagnostics: Diagnostics) -> Iterator[tuple[str | None, str]]:
    """Yield every file to read, with the name of the query wanted from it, or None for all."""
    yield from declared.named.items()
    yield from ((None, file) for file in dict.fromkeys(declared.files))
    if declared.folder is None:
        return
    query_folder = resolve_inside(folder, declared.folder)
    if query_folder is None or not query_folder.is_dir():
        reason = "leads out of the folder of the configuration" if query_folder is None else "is not a folder"
        diagnostics.error("query_dir_unreadable", path, f"'{declared.folder}' {reason}")
        return
    try:
        names = sorted(file.name for file in query_folder.iterdir() if file.name.endswith(_ENDING))
    except OSError as fault:
        diagnostics.error("query_dir_unreadable", path, f"'{declared.folder}' cannot be read: {fault.strerror}")
        return
    if not names:
        diagnostics.error("query_dir_empty", path, f"there is no {_ENDING} file in '{declared.folder}'")
    yield from ((None, f"{declared.folder.rstrip('/')}/{name}") for name in names)
