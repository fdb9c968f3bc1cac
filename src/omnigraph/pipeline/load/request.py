"""What a caller asks for, and what comes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError, InvalidRequestError, LimitError
from omnigraph.model.commit import CommitKind
from omnigraph.model.schema import DST, SRC, EdgeType, NodeType, Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.load.how_far import Watch, ignore_progress
from omnigraph.pipeline.load.problems import Located, Problem, located
from omnigraph.pipeline.load.sources import OPTION, Source
from omnigraph.pipeline.load.tabular import Columns
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.write import IntentPolicy, Operation
from omnigraph.transaction.write_set import WriteSet


@dataclass(frozen=True, slots=True)
class FrameToLoad:
    """A Spark frame whose rows are loaded.

    Attributes:
        name: for messages.
        frame: a `DataFrame`.
        type_key: the type of its rows; None for one column of JSON lines.
    """

    name: str
    frame: Any
    type_key: str | None


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load, decided in all its parts.

    Attributes:
        sources: the files.
        mode: what to do about entities that are there already.
        columns: whose rows files with columns hold.
        frames: Spark frames to load, in the place of files.
        keeps_rejects: put records aside that cannot be loaded, and load the others.
        max_rejects: how many at most; None for as many as can be held at once.
        watch: whom to tell how far it is.
    """

    sources: tuple[Source, ...]
    mode: Mode
    columns: Columns | None = None
    frames: tuple[FrameToLoad, ...] = ()
    keeps_rejects: bool = False
    max_rejects: int | None = None
    watch: Watch = ignore_progress

    @property
    def named_types(self) -> tuple[str, ...]:
        """The types whose rows files with columns hold, be there none."""
        named = [] if self.columns is None else [self.columns.entity.type_key]
        return tuple(dict.fromkeys((*named, *(frame.type_key for frame in self.frames if frame.type_key is not None))))

    @property
    def bytes(self) -> int:
        """How large the files are together."""
        return sum(source.size for source in self.sources)


@dataclass(slots=True)
class Loaded:
    """What a load will bring; complete once its operation has run.

    Attributes:
        counts: by type key, how many records.
        rejects: records put aside.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    rejects: tuple[Located, ...] = ()


def columns_of(
    schema: Schema,
    sources: tuple[Source, ...],
    *,
    type_name: str | None,
    edge: str | None,
    from_column: str | None,
    to_column: str | None,
) -> Columns | None:
    """Whose rows the files hold, where the caller has to say so.

    Args:
        schema: the types there are.
        sources: the files.
        type_name: a node type.
        edge: an edge type.
        from_column: of edges, the column with the ids of the nodes they leave.
        to_column: of edges, the column with the ids of the nodes they reach.

    Returns:
        Columns | None: None for records that name their types themselves.

    Raises:
        InvalidRequestError: the type is missing, or named where it must not be, or there is none such.
    """
    first = sources[0]
    other = next((source for source in sources if source.is_json is not first.is_json), None)
    if other is not None:
        lines, table = (first, other) if first.is_json else (other, first)
        raise _wrong(
            f"{lines.name} holds JSON lines and {table.name} is {table.format}: load the two kinds one after the other"
        )
    ends = {end: column for end, column in ((SRC, from_column), (DST, to_column)) if column is not None}
    if first.is_json:
        if type_name is not None or edge is not None:
            raise _wrong("records in JSON name their types themselves: leave out the type")
        if ends:
            raise _wrong("records in JSON have no columns: leave out those of an edge's nodes")
        return None
    if type_name is not None and edge is not None:
        raise _wrong(
            f"{first.name} holds rows of one type, and two are named: leave out the node type '{type_name}' or the "
            f"edge type '{edge}'"
        )
    if type_name is None and edge is None:
        raise _wrong(f"{first.name} holds rows of one type: name a node type or an edge type")
    if type_name is None:
        return Columns(_edge(schema, edge or ""), ends)
    if ends:
        raise _wrong(
            f"'{type_name}' is named as a node type, and only edges leave or reach a node: name the edge type instead, "
            "or leave out the columns of the nodes"
        )
    return Columns(_node(schema, type_name), {})


def _node(schema: Schema, name: str) -> NodeType:
    found = schema.node(name)
    if found is not None:
        return found
    if schema.edge(name) is not None:
        raise _wrong(f"unknown node type '{name}': it is an edge type, name it as one")
    raise _wrong(explain_unknown("unknown node type", name, (entity.name for entity in schema.nodes)))


def _edge(schema: Schema, name: str) -> EdgeType:
    found = schema.edge(name)
    if found is not None:
        return found
    if schema.node(name) is not None:
        raise _wrong(f"unknown edge type '{name}': it is a node type, name it as one")
    raise _wrong(explain_unknown("unknown edge type", name, (entity.name for entity in schema.edges)))


def _wrong(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code=OPTION)


def operation(
    request: LoadRequest, type_keys: frozenset[str], run: Callable[[WriteSet], None], *, noted: bool = False
) -> Operation:
    """The write that a load is; with `noted`, one that leaves an intent whatever its size."""
    return Operation(
        kind=CommitKind.LOAD,
        type_keys=type_keys,
        run=run,
        # Content that was replaced whole was replaced on sight of what was there: the caller decides again.
        redoable=request.mode is not Mode.OVERWRITE,
        always_commits=True,
        intent=IntentPolicy.ALWAYS if noted else IntentPolicy.BY_SIZE,
    )


def refuse_or_keep(request: LoadRequest, problems: list[Problem]) -> tuple[Located, ...]:
    """What became of records that cannot be loaded: put aside, where the caller wants that.

    Args:
        request: what was asked for.
        problems: what was found.

    Returns:
        tuple[Located, ...]: the records put aside.

    Raises:
        GraphError: the first of them, where nothing may be put aside.
        TooManyRejectsError: there are more than may be.
    """
    if not problems:
        return ()
    if not request.keeps_rejects:
        raise located([min(problems, key=lambda entity: entity.order)], request.sources)[0].error
    most = min(limits.LOAD_REJECTS_MAX, limits.LOAD_REJECTS_MAX if request.max_rejects is None else request.max_rejects)
    found = tuple(located(problems[: limits.LOAD_REJECTS_MAX], request.sources))
    if len(problems) > most:
        raise TooManyRejectsError(len(problems), most, found)
    return found


class TooManyRejectsError(LimitError):
    """More records had to be put aside than may be."""

    def __init__(self, count: int, most: int, rejects: tuple[Located, ...]) -> None:
        first: GraphError = rejects[0].error
        super().__init__(
            f"{count} records cannot be loaded, more than the {most} that may be put aside; the first: {first.message}",
            code="too_many_rejects",
            actual=count,
            limit=most,
        )
        self.rejects = rejects
