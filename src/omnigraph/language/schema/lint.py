"""Lint codes for schemas, and warnings about schema texts.

A code never changes its meaning. Of the `OG-` codes, the emitted ones annotate unsupported steps of a plan; the others
are reserved for changes that are not distinguished yet, or that have become ordinary steps. The `S` codes are warnings
about valid but suspicious texts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from omnigraph.language.schema.parse_annotation import CONSTRAINT_NAMES
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Bounds,
    ConstraintSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    PropertySyntax,
    SchemaSyntax,
)
from omnigraph.language.text import Source, Span


class Tier(StrEnum):
    """Risk of a schema change."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class LintCode:
    """One entry of the catalogue.

    Attributes:
        code: printed code.
        tier: risk of such a change.
        severity: severity of its findings.
        meaning: description for people.
        is_emitted: True if this release reports it.
    """

    code: str
    tier: Tier
    severity: Severity
    meaning: str
    is_emitted: bool

    @property
    def family(self) -> str:
        """The two letters in the middle; empty for warnings about texts."""
        return self.code.split("-")[1] if "-" in self.code else ""


FAMILIES = ("DS", "MF", "CD", "BC", "NM", "OW", "NL", "VE", "ED", "LK")

ADD_REQUIRED_PROPERTY = "OG-MF-103"
CHANGE_PROPERTY_TYPE = "OG-MF-106"
UNKNOWN_ANNOTATION = "S101"
INDEX_WITHOUT_EFFECT = "S102"
EMPTY_RANGE = "S103"

_D, _V, _S = Tier.DESTRUCTIVE, Tier.VALIDATED, Tier.SAFE
_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

CATALOGUE: Mapping[str, LintCode] = {
    code.code: code
    for code in (
        LintCode("OG-DS-101", _D, _ERROR, "drop populated graph type", is_emitted=False),
        LintCode("OG-DS-102", _D, _ERROR, "drop populated node type", is_emitted=False),
        LintCode("OG-DS-103", _D, _ERROR, "drop populated edge type", is_emitted=False),
        LintCode("OG-DS-104", _D, _ERROR, "drop property from populated type", is_emitted=False),
        LintCode("OG-DS-105", _D, _ERROR, "drop populated vector property", is_emitted=False),
        LintCode(ADD_REQUIRED_PROPERTY, _V, _ERROR, "add required property without default", is_emitted=True),
        LintCode("OG-MF-104", _V, _ERROR, "tighten nullable to non-null", is_emitted=False),
        LintCode(CHANGE_PROPERTY_TYPE, _D, _ERROR, "narrowing / changing scalar type", is_emitted=True),
        LintCode(
            UNKNOWN_ANNOTATION, _S, _WARNING, "annotation without meaning, close to one that has", is_emitted=True
        ),
        LintCode(INDEX_WITHOUT_EFFECT, _S, _WARNING, "declared index that is never built", is_emitted=True),
        LintCode(EMPTY_RANGE, _S, _WARNING, "range that no value lies in", is_emitted=True),
    )
}

_KNOWN_ANNOTATIONS = (
    *sorted(CONSTRAINT_NAMES),
    "analyzer",
    "card",
    "description",
    "embed",
    "instruction",
    "rename_from",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Valid but suspicious part of a schema text."""

    code: str
    severity: Severity
    message: str
    line: int
    column: int
    type_name: str
    property_name: str | None = None


def lint(syntax: SchemaSyntax) -> tuple[Finding, ...]:
    """Return the warnings about a schema text, in textual order; the text may have other problems.

    Args:
        syntax: its tree; it need not be free of problems.

    Returns:
        Findings in the order of the text.
    """
    return tuple(
        finding for declaration in syntax.declarations for finding in _lint_declaration(syntax.source, declaration)
    )


def _lint_declaration(source: Source, declaration: Declaration) -> Iterator[Finding]:
    owner = declaration.name.text
    if not isinstance(declaration, InterfaceSyntax):
        yield from _lint_annotations(source, declaration.annotations, owner, None)
    for member in declaration.members:
        if isinstance(member, PropertySyntax):
            yield from _lint_annotations(source, member.annotations, owner, member.name)
            if isinstance(declaration, EdgeSyntax) and any(found.name == "index" for found in member.annotations):
                message = f"@index on {owner}.{member.name} builds nothing: edges are indexed by id, src and dst"
                yield _make_finding(source, member.span, INDEX_WITHOUT_EFFECT, message, owner, name=member.name)
        else:
            yield from _lint_constraint(source, member, declaration)


def _lint_annotations(
    source: Source, annotations: tuple[AnnotationSyntax, ...], owner: str, name: str | None
) -> Iterator[Finding]:
    subject = owner if name is None else f"{owner}.{name}"
    for annotation in annotations:
        if annotation.name == "card":
            message = f"@card on {subject} has no effect; on an edge, directly after its ends, write @card(min..max)"
            yield _make_finding(source, annotation.span, UNKNOWN_ANNOTATION, message, owner, name=name)
        elif annotation.name not in _KNOWN_ANNOTATIONS:
            close = get_close_matches(annotation.name, _KNOWN_ANNOTATIONS, n=1, cutoff=0.75)
            if close:
                message = f"@{annotation.name} on {subject} has no effect; did you mean @{close[0]}?"
                yield _make_finding(source, annotation.span, UNKNOWN_ANNOTATION, message, owner, name=name)


def _lint_constraint(source: Source, constraint: ConstraintSyntax, declaration: Declaration) -> Iterator[Finding]:
    owner = declaration.name.text
    if constraint.name == "index" and (isinstance(declaration, EdgeSyntax) or len(constraint.arguments) > 1):
        why = "edges are indexed by id, src and dst" if isinstance(declaration, EdgeSyntax) else "it names several"
        yield _make_finding(
            source, constraint.span, INDEX_WITHOUT_EFFECT, f"@index on {owner} builds nothing: {why}", owner
        )
    for argument in constraint.arguments:
        match argument:
            case Bounds(int() | float() as least, int() | float() as most) if least > most:
                message = f"@range on {owner} lets no value pass: {least} exceeds {most}"
                yield _make_finding(source, argument.span, EMPTY_RANGE, message, owner)


def _make_finding(
    source: Source, span: Span, code: str, message: str, owner: str, *, name: str | None = None
) -> Finding:
    line, column = source.position(span.start)
    return Finding(code, CATALOGUE[code].severity, message, line, column, owner, name)
