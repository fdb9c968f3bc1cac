"""How a plan's searches would be carried out, in sentences: which indexes they use, and with what effort."""

from collections.abc import Callable, Iterable, Iterator

from omnigraph import limits
from omnigraph.execution.adjacencies import ENDS
from omnigraph.execution.columns import Columns
from omnigraph.execution.demand import kinds
from omnigraph.execution.index_filter import chosen_filter, index_filters
from omnigraph.execution.keys import lookup_for
from omnigraph.execution.search.stored_vectors import effort_for
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Expression
from omnigraph.language.plan.pipeline import find_read_expressions, get_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import walk
from omnigraph.model.schema import ID, Schema


def search_notes(pipeline: Iterable[Step], schema: Schema, rows_of: Callable[[str], Columns]) -> list[str]:
    """What a plan searches, and how.

    Args:
        pipeline (Iterable[Step]): its steps.
        schema (Schema): what it was made for.
        rows_of (Callable[[str], Columns]): the rows of a type, by its key.

    Returns:
        list[str]: one line each; none where nothing is searched.
    """
    everything = list(_nested(pipeline))
    types: dict[str, str] = {}
    for step in everything:
        types |= kinds([step])
        if isinstance(step, steps.CountNodes):
            # What is only counted is bound to nothing, but searched all the same.
            types[step.variable] = f"node:{step.type_name}"
    notes: dict[str, None] = {}
    for step in everything:
        if isinstance(step, steps.Scan | steps.CountNodes):
            notes |= dict.fromkeys(_found(step, schema, rows_of))
        elif isinstance(step, steps.Expand):
            notes |= dict.fromkeys(_followed(step, rows_of(f"edge:{step.edge}")))
        for expression in _expressions(step):
            for part in walk(expression):
                if isinstance(part, ex.Nearest):
                    notes[_vectors(part, rows_of(types[part.target.variable]))] = None
                elif isinstance(part, ex.Bm25 | ex.TextMatch):
                    notes[_words(part, rows_of(types[part.target.variable]))] = None
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
    yield from (each for each in conditions if each is not None)


def _found(step: steps.Scan | steps.CountNodes, schema: Schema, rows_of: Callable[[str], Columns]) -> Iterator[str]:
    node = schema.node(step.type_name)
    if node is None or step.condition is None:
        return
    rows = rows_of(node.type_key)
    if lookup_for(node, step.variable, step.condition) is None:
        found = chosen_filter(index_filters(step.variable, step.condition), rows)
        if found is not None:
            column, index = found[0].column, found[1]
            yield f"${step.variable}.{column}: nodes are found through the index {index.name} ({index.kind.upper()})"
        return
    if rows.numbering.size > limits.READ_WHOLE_ROWS_MAX:
        yield from (
            f"${step.variable} is found by its key through the index {each.name} ({each.kind.upper()})"
            for each in rows.table.indexes()
            if each.columns == (ID,)
        )


def _followed(step: steps.Expand, edges: Columns) -> Iterator[str]:
    if edges.numbering.size <= limits.READ_WHOLE_ROWS_MAX:
        return
    built = {each.columns: each for each in edges.table.indexes()}
    found = [built[end,] for end in ENDS[step.direction] if (end,) in built]
    if len(found) == len(ENDS[step.direction]):
        named = " and ".join(f"{each.name} ({each.kind.upper()})" for each in found)
        yield f"{step.edge}: edges of few nodes are found through {named}, of many through neighbours in memory"


def _vectors(score: ex.Nearest, rows: Columns) -> str:
    where = f"${score.target.variable}.{score.target.name}"
    index = rows.vector_index(score.target.name, searches=0)
    kept = "read piece by piece" if rows.is_read_in_pieces(score.target.name) else "in memory"
    if index is None:
        return f"{where}: distances are exact, of vectors {kept} ({rows.numbering.count:,} nodes)"
    effort = effort_for(index)
    cells = "all its cells" if effort.is_exhaustive else f"{effort.looked_into} of about {effort.cells} cells"
    return (
        f"{where}: near vectors of all nodes are found through the index {index.name} ({index.kind.upper()}), "
        f"by looking into {cells}, and put in order by exact distances; {index.rows_missing:,} of "
        f"{rows.numbering.count:,} nodes are not in it yet and compared one by one; "
        f"of fewer nodes distances are exact, of vectors {kept}"
    )


def _words(search: ex.Bm25 | ex.TextMatch, rows: Columns) -> str:
    where = f"${search.target.variable}.{search.target.name}"
    comes_from = rows.words_come_from(search.target.name, search.analyzer)
    return (
        f"{where}: words are found through an index {comes_from}, over all texts ({rows.numbering.count:,} nodes), "
        f"by the analyzer {search.analyzer}"
    )
