"""Explain output for searches: which indexes a plan uses, and with what effort."""

from collections.abc import Callable, Iterable, Iterator

from omnigraph import limits
from omnigraph.execution.adjacency_cache import ENDS
from omnigraph.execution.columns import Columns
from omnigraph.execution.demand import variable_kinds
from omnigraph.execution.index_filter import choose_filter, index_filters
from omnigraph.execution.key_lookup import find_key_lookup
from omnigraph.execution.search.vector_index import search_effort
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Expression
from omnigraph.language.plan.pipeline import find_read_expressions, get_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import walk
from omnigraph.model.schema import ID, Schema


def explain_searches(pipeline: Iterable[Step], schema: Schema, rows_of: Callable[[str], Columns]) -> list[str]:
    """Describe what a plan searches, and how; one line each."""
    everything = list(_nested(pipeline))
    types: dict[str, str] = {}
    for step in everything:
        types |= variable_kinds([step])
        if isinstance(step, steps.CountNodes):
            # Nodes that are only counted have no binding, but are searched too.
            types[step.variable] = f"node:{step.type_name}"
    notes: dict[str, None] = {}
    for step in everything:
        if isinstance(step, steps.Scan | steps.CountNodes):
            notes |= dict.fromkeys(_explain_scan(step, schema, rows_of))
        elif isinstance(step, steps.Expand):
            notes |= dict.fromkeys(_explain_expand(step, rows_of(f"edge:{step.edge}")))
        for expression in _expressions(step):
            for part in walk(expression):
                if isinstance(part, ex.Nearest):
                    notes[_explain_vectors(part, rows_of(types[part.target.variable]))] = None
                elif isinstance(part, ex.Bm25 | ex.TextMatch):
                    notes[_explain_text(part, rows_of(types[part.target.variable]))] = None
    return list(notes)


def _nested(pipeline: Iterable[Step]) -> Iterator[Step]:
    for step in pipeline:
        yield step
        for inner in get_nested_steps(step):
            yield from _nested(inner)


def _expressions(step: Step) -> Iterator[Expression | Aggregation]:
    yield from find_read_expressions(step)
    match step:
        case steps.Scan() | steps.CountNodes():
            conditions = [step.condition]
        case steps.Expand():
            conditions = [step.target_condition, step.edge_condition]
        case _:
            conditions = []
    yield from (condition for condition in conditions if condition is not None)


def _explain_scan(
    step: steps.Scan | steps.CountNodes, schema: Schema, rows_of: Callable[[str], Columns]
) -> Iterator[str]:
    node = schema.node(step.type_name)
    if node is None or step.condition is None:
        return
    rows = rows_of(node.type_key)
    if find_key_lookup(node, step.variable, step.condition) is None:
        found = choose_filter(index_filters(step.variable, step.condition), rows)
        if found is not None:
            column, index = found[0].column, found[1]
            yield f"${step.variable}.{column}: nodes are found through the index {index.name} ({index.kind.upper()})"
        return
    if rows.numbering.size > limits.READ_WHOLE_ROWS_MAX:
        yield from (
            f"${step.variable} is found by its key through the index {index.name} ({index.kind.upper()})"
            for index in rows.table.indexes()
            if index.columns == (ID,)
        )


def _explain_expand(step: steps.Expand, edges: Columns) -> Iterator[str]:
    if edges.numbering.size <= limits.READ_WHOLE_ROWS_MAX:
        return
    built = {index.columns: index for index in edges.table.indexes()}
    found = [built[end,] for end in ENDS[step.direction] if (end,) in built]
    if len(found) == len(ENDS[step.direction]):
        named = " and ".join(f"{index.name} ({index.kind.upper()})" for index in found)
        yield f"{step.edge}: edges of few nodes are found through {named}, of many through neighbours in memory"


def _explain_vectors(score: ex.Nearest, rows: Columns) -> str:
    where = f"${score.target.variable}.{score.target.name}"
    index = rows.vector_index(score.target.name, searches=0)
    kept = "read piece by piece" if rows.is_read_in_pieces(score.target.name) else "in memory"
    if index is None:
        return f"{where}: distances are exact, of vectors {kept} ({rows.numbering.count:,} nodes)"
    effort = search_effort(index)
    cells = "all its cells" if effort.is_exhaustive else f"{effort.probed} of about {effort.cells} cells"
    return (
        f"{where}: near vectors of all nodes are found through the index {index.name} ({index.kind.upper()}), "
        f"by looking into {cells}, and put in order by exact distances; {index.rows_missing:,} of "
        f"{rows.numbering.count:,} nodes are not in it yet and compared one by one; "
        f"of fewer nodes distances are exact, of vectors {kept}"
    )


def _explain_text(search: ex.Bm25 | ex.TextMatch, rows: Columns) -> str:
    where = f"${search.target.variable}.{search.target.name}"
    comes_from = rows.text_index_source(search.target.name, search.analyzer)
    return (
        f"{where}: words are found through an index {comes_from}, over all texts ({rows.numbering.count:,} nodes), "
        f"by the analyzer {search.analyzer}"
    )
