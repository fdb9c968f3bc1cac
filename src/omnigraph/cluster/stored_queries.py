"""Finding a graph's stored queries in its files, and checking them against its schema."""

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
    """A query of a file.

    Attributes:
        name: by which it is called.
        file: where it is, as the configuration names it.
        body: the whole file.
    """

    name: str
    file: str
    body: bytes


def find_queries(folder: Path, declared: QueryFiles, *, path: str, diagnostics: Diagnostics) -> dict[str, FoundQuery]:
    """The queries that a configuration declares for a graph.

    Args:
        folder: of the configuration.
        declared: where they are.
        path: where that stands in the configuration, for messages.
        diagnostics: gets what is wrong with them.

    Returns:
        Them by name, in order.
    """
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
                message = f"the query '{name}' of {file} is in {found[name].file} already"
                diagnostics.error("duplicate_query_name", path, message)
            elif not layout.is_query_name(name):
                diagnostics.error("invalid_resource_id", path, f"'{name}' of {file} is no name to store a query under")
            else:
                found[name] = FoundQuery(name, file, body)
    return dict(sorted(found.items()))


def check_queries(
    queries: dict[str, FoundQuery], schema: Schema | None, *, graph: str, diagnostics: Diagnostics
) -> None:
    """Check queries against the schema of their graph.

    Args:
        queries: by name.
        schema: of the graph; None where it could not be read.
        graph: its id.
        diagnostics: gets what is wrong.
    """
    if schema is None:
        if queries:
            message = "the queries were not checked: there is no schema to check them against"
            diagnostics.warning("query_typecheck_skipped", f"graphs.{graph}.queries", message)
        return
    for name, error in find_query_errors({query.name: query.body.decode() for query in queries.values()}, schema):
        diagnostics.error("query_typecheck_error", f"query.{graph}.{name}", error)


def find_query_errors(texts: dict[str, str], schema: Schema) -> Iterator[tuple[str, str]]:
    """The queries that a schema does not fit, each with the reason.

    Args:
        texts: by name, the file a query is in.
        schema: what they are about.

    Yields:
        The name and the reason.
    """
    reports = {text: lint(text, schema) for text in dict.fromkeys(texts.values())}
    for name, text in texts.items():
        report = reports[text]
        for result in report.results:
            if result.name == name and result.error is not None:
                yield name, result.error
        if not report.results:
            yield from ((name, finding.message) for finding in report.findings)


def _files(folder: Path, declared: QueryFiles, path: str, diagnostics: Diagnostics) -> Iterator[tuple[str | None, str]]:
    """Each file to read, with the one query that is wanted of it where that was said."""
    yield from declared.named.items()
    yield from ((None, file) for file in dict.fromkeys(declared.files))
    if declared.folder is None:
        return
    place = resolve_inside(folder, declared.folder)
    if place is None or not place.is_dir():
        reason = "leads out of the folder of the configuration" if place is None else "is no folder"
        diagnostics.error("query_dir_unreadable", path, f"'{declared.folder}' {reason}")
        return
    try:
        names = sorted(file.name for file in place.iterdir() if file.name.endswith(_ENDING))
    except OSError as fault:
        diagnostics.error("query_dir_unreadable", path, f"'{declared.folder}' cannot be read: {fault.strerror}")
        return
    if not names:
        diagnostics.error("query_dir_empty", path, f"there is no {_ENDING} file in '{declared.folder}'")
    yield from ((None, f"{declared.folder.rstrip('/')}/{name}") for name in names)
