"""Syntax tree of whole queries: reads, mutations and their parameters."""

from dataclasses import dataclass

from omnigraph.language.query.syntax import Assignment, Clause, Expression, Literal, Syntax, Variable


@dataclass(frozen=True, slots=True)
class Projection(Syntax):
    """`$p.name as n`."""

    value: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Ordering(Syntax):
    """`$p.age desc`."""

    value: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Read(Syntax):
    """`match { … } return { … } order { … } limit n offset m`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    ordering: tuple[Ordering, ...] = ()
    limit: Literal | Variable | None = None
    offset: Literal | Variable | None = None


@dataclass(frozen=True, slots=True)
class Insert(Syntax):
    """`insert Person { name: $n }`, or `upsert Person { … }`, which `keeps` what it does not name."""

    type_name: str
    assignments: tuple[Assignment, ...]
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Update(Syntax):
    """`update Person set { age: $a } where name = $n`."""

    type_name: str
    assignments: tuple[Assignment, ...]
    where: Expression


@dataclass(frozen=True, slots=True)
class Delete(Syntax):
    """`delete Person where name = $n`."""

    type_name: str
    where: Expression


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation(Syntax):
    """One or more statements, executed in order."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ParameterType(Syntax):
    """`String?`, `[I64]`, `Vector(4)`; `dimension` is as written and may be invalid."""

    base: str
    is_list: bool = False
    dimension: int | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Parameter(Syntax):
    """`$n: String`."""

    name: str
    type: ParameterType


@dataclass(frozen=True, slots=True)
class Query(Syntax):
    """`query name(…) @description("…") { … }`."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class QueryFile(Syntax):
    """All queries of one text, in order."""

    queries: tuple[Query, ...]
