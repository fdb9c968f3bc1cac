"""Errors and warnings in a query file."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import GraphError, ParseError
from omnigraph.language.query import statements
from omnigraph.language.query.bind import bind
from omnigraph.language.query.describe import Operation, describe
from omnigraph.language.query.parse import parse_source
from omnigraph.language.text import Source
from omnigraph.model.schema import NodeType, Schema

HARD_CODED = "mutation declares no params; hardcoded mutations are easy to miss"


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about the file as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the wire format."""
        document: dict[str, object] = {"severity": self.severity.value, "code": self.code, "message": self.message}
        if self.type_name is not None:
            document["type_name"] = self.type_name
        if self.property is not None:
            document["property"] = self.property
        if self.query_names:
            document["query_names"] = list(self.query_names)
        return document


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Findings about one query."""

    name: str
    is_mutation: bool
    warnings: tuple[str, ...] = ()
    error: str | None = None
    operation: Operation | None = None

    @property
    def kind(self) -> str:
        """`read` or `mutation`."""
        return "mutation" if self.is_mutation else "read"

    def to_json(self) -> dict[str, object]:
        """Return the wire format."""
        status = "ok" if self.error is None else "error"
        document: dict[str, object] = {"name": self.name, "kind": self.kind, "status": status}
        if self.warnings:
            document["warnings"] = list(self.warnings)
        if self.error is not None:
            document["error"] = self.error
        if self.operation is not None:
            document["operation"] = self.operation.to_json()
        return document


@dataclass(frozen=True, slots=True)
class LintReport:
    """All findings about a file."""

    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """Number of errors in queries and in the file."""
        return sum(result.error is not None for result in self.results) + self._count_findings(Severity.ERROR)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return sum(len(result.warnings) for result in self.results) + self._count_findings(Severity.WARNING)

    @property
    def infos(self) -> int:
        """Number of informational findings."""
        return self._count_findings(Severity.INFO)

    @property
    def is_ok(self) -> bool:
        """True if there are no errors."""
        return self.errors == 0

    def _count_findings(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)

    def to_json(self, *, schema_source: dict[str, str], query_path: str) -> dict[str, object]:
        """Return the wire format.

        Args:
            schema_source: `{"kind": "file", "path": …}` or `{"kind": "graph", "uri": …}`.
            query_path: path of the query file.
        """
        return {
            "status": "ok" if self.is_ok else "error",
            "schema_source": schema_source,
            "query_path": query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        for result in self.results:
            if result.error is None:
                yield f"OK    query `{result.name}` ({result.kind})"
            else:
                yield f"ERROR query `{result.name}`: {result.error}"
            for warning in result.warnings:
                yield f"WARN  query `{result.name}`: {warning}"
        for finding in self.findings:
            word = {Severity.ERROR: "ERROR", Severity.WARNING: "WARN ", Severity.INFO: "INFO "}[finding.severity]
            yield f"{word} {finding.code}: {finding.message}"
        yield (
            f"INFO  Lint complete: {len(self.results)} queries processed "
            f"({self.errors} error(s), {self.warnings} warning(s), {self.infos} info item(s))"
        )


def lint(text: str | bytes, schema: Schema) -> LintReport:
    """Check every query of a file against a schema; a file that does not parse gives one finding.

    Args:
        text: the query file.
        schema: what it is about.

    Returns:
        What was found; a file that does not parse gives one finding.
    """
    try:
        source = Source(text, "query text")
        file = parse_source(source)
    except GraphError as mistake:
        return LintReport((), (Finding(Severity.ERROR, "Q000", str(mistake)),))
    results = tuple(_check_query(query, schema, source) for query in file.queries)
    return LintReport(results, tuple(_find_never_updated(file, schema)))


def _check_query(query: statements.Query, schema: Schema, source: Source) -> QueryResult:
    is_mutation = isinstance(query.body, statements.Mutation)
    warnings = (HARD_CODED,) if is_mutation and not query.parameters else ()
    try:
        operation = describe(bind(query, schema, source), schema)
    except ParseError as mistake:
        return QueryResult(query.name, is_mutation, warnings, f"{mistake.stage} error: {mistake.message}")
    except GraphError as mistake:
        return QueryResult(query.name, is_mutation, warnings, mistake.message)
    return QueryResult(query.name, is_mutation, warnings, operation=operation)


def _find_never_updated(file: statements.QueryFile, schema: Schema) -> Iterator[Finding]:
    """Yield nullable properties of updated types that no update sets."""
    updates: dict[str, list[tuple[str, statements.Update]]] = {}
    for query in file.queries:
        if isinstance(query.body, statements.Mutation):
            for statement in query.body.statements:
                if isinstance(statement, statements.Update):
                    updates.setdefault(statement.type_name, []).append((query.name, statement))
    for type_name in sorted(updates):
        node = schema.node(type_name)
        if node is not None:
            names = tuple(dict.fromkeys(name for name, _ in updates[type_name]))
            assigned = {
                assignment.property for _, statement in updates[type_name] for assignment in statement.assignments
            }
            yield from _find_unset(node, assigned, names)


def _find_unset(node: NodeType, assigned: set[str], names: tuple[str, ...]) -> Iterator[Finding]:
    key = {property_.name for property_ in node.key}
    for property_ in node.properties:
        if (
            property_.type.nullable
            and property_.name not in key
            and property_.embed is None
            and property_.name not in assigned
        ):
            message = f"{node.name}.{property_.name} exists in schema but no update query sets it"
            yield Finding(Severity.WARNING, "L201", message, node.name, property_.name, names)
