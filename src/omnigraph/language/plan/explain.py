"""Format plans as indented text, one step per line, nested steps below their parent."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.language.plan import render, steps
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.pattern import Direction
from omnigraph.language.plan.steps import MutationStep, Step

_INDENT = "  "


def explain(plan: steps.Plan) -> str:
    """Format the plan of a read or a mutation, steps in execution order."""
    match plan:
        case steps.ReadPlan():
            return "\n".join(_format_lines(plan.steps, 0))
        case steps.MutationPlan():
            return "\n".join(_format_mutation(step) for step in plan.steps)
        case _:
            assert_never(plan)


def _format_lines(pipeline: Iterable[Step], depth: int) -> Iterator[str]:
    for step in pipeline:
        yield from _format_step(step, depth)


def _format_step(step: Step, depth: int) -> Iterator[str]:
    margin = _INDENT * depth
    match step:
        case steps.Product():
            yield f"{margin}each with"
            yield from _format_lines(step.steps, depth + 1)
        case steps.SemiJoin():
            yield f"{margin}keep where there is"
            yield from _format_lines(step.steps, depth + 1)
        case steps.AntiJoin():
            yield f"{margin}keep where there is no"
            yield from _format_lines(step.steps, depth + 1)
        case steps.Mark():
            yield f"{margin}note as {step.name} whether there is"
            yield from _format_lines(step.steps, depth + 1)
        case steps.Optional():
            yield f"{margin}optionally bring {_format_variables(step.variables)}"
            yield from _format_lines(step.steps, depth + 1)
        case steps.Alternatives():
            yield f"{margin}any of" + (f", for {_format_variables(step.variables)}" if step.variables else "")
            for branch in step.branches:
                yield f"{margin}{_INDENT}either"
                yield from _format_lines(branch, depth + 2)
        case _:
            yield margin + _format_line(step)


def _format_line(
    step: steps.Given
    | steps.Scan
    | steps.Expand
    | steps.Connect
    | steps.Filter
    | steps.Rank
    | steps.CountNodes
    | steps.CountEdges
    | steps.Aggregate
    | steps.Project
    | steps.Distinct
    | steps.Order
    | steps.Limit,
) -> str:
    match step:
        case steps.Given():
            return f"given {_format_variables(step.variables)}"
        case steps.Scan():
            limit = f", at most {render.format_window(step.at_most)}" if step.at_most else ""
            where = _format_where(step.condition)
            return f"scan ${step.variable}: {step.type_name}{_format_properties(step.properties)}{where}{limit}"
        case steps.Expand():
            path = f" as ${step.path}" if step.path else ""
            target = f"${step.target}: {step.target_type}{_format_properties(step.target_properties)}"
            where = _format_where(step.edge_condition, step.target_condition)
            return f"expand ${step.source} {_format_edge(step)} {target}{path}{where}"
        case steps.Connect():
            path = f" as ${step.path}" if step.path else ""
            return (
                f"connect ${step.source} {_format_edge(step)} ${step.target}{path}{_format_where(step.edge_condition)}"
            )
        case steps.Filter():
            return f"filter {render.format_expression(step.condition)}"
        case steps.Rank():
            depth = f", the first {render.format_window(step.depth)} of each" if step.depth else ""
            dropped = ", only those that have one" if step.required else ""
            return f"rank {step.name} = {render.format_expression(step.score)}{depth}{dropped}"
        case steps.CountNodes():
            return f"count {step.name} of {step.type_name} ${step.variable}{_format_where(step.condition)}"
        case steps.CountEdges():
            what = "edges" if step.each_record else "neighbours"
            arrow = _format_arrow(step.edge, step.direction, step.least, step.most)
            return f"count {step.name} {what} of ${step.source} {arrow}"
        case steps.Aggregate():
            weights = f", each row {' × '.join(step.weights)} times" if step.weights else ""
            return f"aggregate {', '.join(map(render.format_column, step.columns))}{weights}"
        case steps.Project():
            return f"return {', '.join(map(render.format_column, step.columns))}"
        case steps.Distinct():
            return "distinct"
        case steps.Order():
            keys = ", ".join(map(render.format_order_key, step.keys))
            ties = f" then {', '.join(map(render.format_expression, step.ties))}" if step.ties else ""
            limit = f", the first {render.format_window(step.at_most)}" if step.at_most else ""
            return f"order by {keys}{ties}{limit}"
        case steps.Limit():
            return f"limit {render.format_window(step.window)}"
        case _:
            assert_never(step)


def _format_variables(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names) or "nothing"


def _format_properties(names: tuple[str, ...] | None) -> str:
    return " {…}" if names is None else f" {{{', '.join(names)}}}" if names else ""


def _format_where(*conditions: Expression | None) -> str:
    rendered = [render.format_expression(condition) for condition in conditions if condition is not None]
    return f" where {' and '.join(rendered)}" if rendered else ""


def _format_edge(step: steps.Expand | steps.Connect) -> str:
    name = f"${step.edge_variable}: {step.edge}" if step.edge_variable else step.edge
    return _format_arrow(
        name + (_format_properties(step.edge_properties) if step.edge_variable else ""),
        step.direction,
        step.least,
        step.most,
    )


def _format_arrow(edge: str, direction: Direction, least: int, most: int) -> str:
    hops = "" if (least, most) == (1, 1) else f"{{{least},{most}}}"
    match direction:
        case Direction.OUT:
            return f"-[{edge}{hops}]->"
        case Direction.IN:
            return f"<-[{edge}{hops}]-"
        case Direction.BOTH:
            return f"-[{edge}{hops}]-"
        case _:
            assert_never(direction)


def _insert_verb(step: steps.InsertNode | steps.InsertEdge) -> str:
    if step.keeps:
        return "patch"
    return "put" if step.keyed else "insert"


def _format_mutation(step: MutationStep) -> str:
    match step:
        case steps.InsertNode():
            verb = _insert_verb(step)
            return f"{verb} node {step.type_name} {_format_assignments(step.assignments)}"
        case steps.InsertEdge():
            source, target = render.format_expression(step.source), render.format_expression(step.target)
            ends = f"from {step.from_type} {source} to {step.to_type} {target}"
            verb = _insert_verb(step)
            return f"{verb} edge {step.type_name} {ends} {_format_assignments(step.assignments)}".rstrip()
        case steps.UpdateNodes():
            return (
                f"update nodes {step.type_name} {_format_assignments(step.assignments)}{_format_where(step.condition)}"
            )
        case steps.DeleteNodes():
            edges = f", and their edges {', '.join(step.edges)}" if step.edges else ""
            return f"delete nodes {step.type_name}{_format_where(step.condition)}{edges}"
        case steps.DeleteEdges():
            return f"delete edges {step.type_name}{_format_where(step.condition)}"
        case _:
            assert_never(step)


def _format_assignments(assignments: Iterable[steps.Assign]) -> str:
    inner = ", ".join(
        f"{assignment.property}: {render.format_expression(assignment.value)}" for assignment in assignments
    )
    return f"{{{inner}}}" if inner else ""
