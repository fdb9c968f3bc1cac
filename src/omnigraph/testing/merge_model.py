"""Three-way merges of the plain model in `graph_model`: schemas, rows, resolutions, blame."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.testing.model import (
    ConflictingRowsError,
    NotModelledError,
    Property,
    Row,
    Schema,
    SchemaClashError,
    State,
    Type,
    changes_between,
    checked,
    same,
)

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True)
class Cells:
    """A resolution for single cells: a side, or a value of its own; the others are put together."""

    sides: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choices:
    """Decisions about what both sides changed: rows, by type identity and id, and the schema."""

    by_property: bool = False
    prefer: str | None = None
    resolutions: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    schema: Mapping[str, str] = field(default_factory=dict)

    def side_of(self, uid: str) -> str | None:
        """Return the side whose type or property to take where both changed it."""
        return self.schema.get(uid, self.prefer)


def merged_schema(base: State, source: State, target: State, choices: Choices) -> Schema:
    """Merge the schemas of three states.

    Raises:
        SchemaClashError: both changed the same thing differently, or two things have one name.
        NotModelledError: a clash that is decided by more than one rule.
    """
    types = []
    olds, news, ours = (state.schema.by_uid() for state in (base, source, target))
    for uid in dict.fromkeys([*ours, *news]):
        old, new, our = olds.get(uid), news.get(uid), ours.get(uid)
        if new is not None and our is not None:
            types.append(_merged_type(uid, (base, source, target), choices))
            continue
        kept, state, side = (our, target, TARGET) if new is None else (new, source, SOURCE)
        assert kept is not None
        if old is not None:
            is_changed = kept != old or any(where[0] == uid for where in changes_between(base, state))
            if not is_changed or _taken(choices, uid, "is dropped on one side and changed on the other") != side:
                continue
        types.append(kept)
    _refuse_equal_names([kind.name.lower() for kind in types], "types", choices)
    return Schema(tuple(types))


def _taken(choices: Choices, uid: str, clash: str) -> str:
    side = choices.side_of(uid)
    if side is None:
        raise SchemaClashError(f"{uid} {clash}", uid)
    return side


def _refuse_equal_names(names: list[str], what: str, choices: Choices) -> None:
    if len(names) != len(set(names)):
        if choices.prefer is not None or choices.schema:
            raise NotModelledError(f"two {what} of one name, one of them preferred")
        raise SchemaClashError(f"two {what} of one name", None)


def _merged_type(uid: str, states: tuple[State, State, State], choices: Choices) -> Type:
    old, new, our = (state.schema.by_uid().get(uid) for state in states)
    assert new is not None and our is not None
    olds, news, ours = (
        {prop.uid: prop for prop in (kind.properties if kind is not None else ())} for kind in (old, new, our)
    )
    found = []
    for cell in dict.fromkeys([*ours, *news]):
        was, theirs, mine = olds.get(cell), news.get(cell), ours.get(cell)
        if theirs is not None and mine is not None:
            found.append(_merged_property(was, theirs, mine, choices))
            continue
        kept, side = (mine, TARGET) if theirs is None else (theirs, SOURCE)
        assert kept is not None
        if was is not None:
            is_changed = kept != was or _has_new_values(states[0], states[1 if side == SOURCE else 2], uid, cell)
            if not is_changed or _taken(choices, cell, "is dropped on one side and changed on the other") != side:
                continue
        found.append(kept)
    _refuse_equal_names([prop.name for prop in found], "properties", choices)
    return replace(our, properties=tuple(found))


def _has_new_values(base: State, side: State, uid: str, cell: str) -> bool:
    """True if a side gave values that are not at the base; a row that it deleted has none to lose."""
    olds = base.rows[uid]
    return any(row.get(cell) != olds.get(row_id, {}).get(cell) for row_id, row in side.rows[uid].items())


def _merged_property(was: Property | None, theirs: Property, mine: Property, choices: Choices) -> Property:
    if theirs == mine:
        return mine
    if was is None:
        if choices.side_of(mine.uid) is not None:
            raise NotModelledError(f"{mine.uid} was added differently, one of them preferred")
        raise SchemaClashError(f"{mine.uid} was added differently", mine.uid)
    old = was

    def pick(get: Callable[[Property], str]) -> str:
        if get(theirs) == get(mine) or get(theirs) == get(old):
            return get(mine)
        if get(mine) == get(old):
            return get(theirs)
        return get(theirs if _taken(choices, old.uid, "was changed differently") == SOURCE else mine)

    return replace(mine, name=pick(lambda prop: prop.name), type=pick(lambda prop: prop.type))


@dataclass(frozen=True)
class _Sides:
    """One row at the base and on both sides, in the cells of the result."""

    was: Row | None
    theirs: Row | None
    mine: Row | None

    @property
    def is_met(self) -> bool:
        """True if both sides changed it, and not to the same."""
        return not (same(self.theirs, self.mine) or same(self.theirs, self.was) or same(self.mine, self.was))

    @property
    def is_changed_by_both(self) -> bool:
        """True if both sides changed it, to the same or not."""
        return not (same(self.theirs, self.was) or same(self.mine, self.was))

    @property
    def disputed(self) -> set[str]:
        """The cells that both sides changed differently; a row that was not there had nulls."""
        was, theirs, mine = self.was or {}, self.theirs or {}, self.mine or {}
        return {
            cell
            for cell in theirs.keys() | mine.keys()
            if theirs.get(cell) not in (mine.get(cell), was.get(cell)) and mine.get(cell) != was.get(cell)
        }

    def mixed(self, disputed_from: str | None) -> dict[str, Any]:
        """Put a row that both sides have together cell by cell."""
        was, theirs, mine = self.was or {}, self.theirs or {}, self.mine or {}
        from_source = {cell for cell in theirs if theirs.get(cell) != was.get(cell)}
        if disputed_from != SOURCE:
            from_source -= self.disputed
        return {cell: (theirs if cell in from_source else mine).get(cell) for cell in mine.keys() | theirs.keys()}

    def of_side(self, side: str, *, by_property: bool) -> Row | None:
        """What naming a side gives: its row, or by property only its disputed cells."""
        if by_property and self.is_changed_by_both and self.theirs is not None and self.mine is not None:
            return self.mixed(side)
        return self.theirs if side == SOURCE else self.mine


def _three_ways(schema: Schema, base: State, source: State, target: State) -> Iterable[tuple[tuple[str, str], _Sides]]:
    olds = base.schema.by_uid()
    for kind in schema.types:
        cells = {prop.uid for prop in kind.properties} | ({"src", "dst"} if kind.is_edge else set())
        at_base = {prop.uid for prop in olds[kind.uid].properties} if kind.uid in olds else set()
        sides = []
        for side in (base, source, target):
            state = side
            # What this side dropped, and the result has, is as it was: a cell, or the whole type.
            own = state.schema.by_uid().get(kind.uid)
            if own is None and kind.uid in olds:
                state, own = base, olds[kind.uid]
            known = {prop.uid for prop in own.properties} if own is not None else set()
            dropped = (at_base - known) & cells
            sides.append(
                {
                    row_id: {cell: value for cell, value in row.items() if cell in cells}
                    | {cell: base.rows[kind.uid].get(row_id, {}).get(cell) for cell in dropped}
                    for row_id, row in state.rows.get(kind.uid, {}).items()
                }
            )
        for row_id in sorted(sides[0].keys() | sides[1].keys() | sides[2].keys()):
            yield (kind.uid, row_id), _Sides(*(side.get(row_id) for side in sides))


def changed_rows(base: State, source: State, target: State, choices: Choices) -> dict[tuple[str, str], bool]:
    """Return the rows that a resolution may name, and whether they need one (under these choices, without any)."""
    schema = merged_schema(base, source, target, choices)
    bare = replace(choices, resolutions={}, prefer=None)
    return {
        where: _decide(sides, bare, where) is _UNDECIDED
        for where, sides in _three_ways(schema, base, source, target)
        if not (same(sides.theirs, sides.was) and same(sides.mine, sides.was))
    }


def merge(base: State, source: State, target: State, choices: Choices) -> State:
    """Merge three-way; blame goes along with the cells.

    Raises:
        SchemaClashError: the schemas cannot be merged.
        ConflictingRowsError: rows are disputed and not decided.
        BrokenRuleError: the result breaks a rule.
    """
    schema = merged_schema(base, source, target, choices)
    rows: dict[str, dict[str, Row]] = {kind.uid: {} for kind in schema.types}
    blame: dict[tuple[str, str, str], frozenset[str]] = {}
    undecided = []
    for where, sides in _three_ways(schema, base, source, target):
        picked = _decide(sides, choices, where)
        if picked is _UNDECIDED:
            undecided.append(where)
        elif picked is not None:
            uid, row_id = where
            rows[uid][row_id] = picked
            for cell, value in picked.items():
                blame[uid, row_id, cell] = frozenset().union(
                    *(
                        state.blame.get((uid, row_id, cell), frozenset())
                        for state, row in ((source, sides.theirs), (target, sides.mine))
                        if row is not None and row.get(cell) == value
                    )
                )
    if undecided:
        raise ConflictingRowsError(undecided)
    return checked(State(schema, rows, blame))


_UNDECIDED: Any = object()


def _decide(sides: _Sides, choices: Choices, where: tuple[str, str]) -> Any:  # noqa: ANN401  (a row, None or _UNDECIDED)
    if where in choices.resolutions:
        return _resolve(sides, choices, choices.resolutions[where])
    if not sides.is_met:
        return sides.theirs if same(sides.mine, sides.was) else sides.mine
    is_update = None not in (sides.was, sides.theirs, sides.mine)
    if choices.by_property and is_update and not sides.disputed:
        return sides.mixed(None)
    if choices.prefer is None:
        return _UNDECIDED
    return sides.of_side(choices.prefer, by_property=choices.by_property)


def _resolve(sides: _Sides, choices: Choices, resolution: Any) -> Any:  # noqa: ANN401  (a row, None or _UNDECIDED)
    if resolution in (SOURCE, TARGET):
        return sides.of_side(resolution, by_property=choices.by_property)
    if not isinstance(resolution, Cells):
        return resolution  # a row, or None to delete
    decided = resolution.sides.keys() | resolution.values.keys()
    if choices.prefer is None and sides.disputed - decided:
        return _UNDECIDED
    found = sides.mixed(choices.prefer)
    for cell, side in resolution.sides.items():
        found[cell] = ((sides.theirs if side == SOURCE else sides.mine) or {}).get(cell)
    return found | dict(resolution.values)
