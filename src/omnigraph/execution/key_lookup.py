"""Point lookups: nodes that a condition names by their key are found by id instead of by a scan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, SingleValue, Value
from omnigraph.language.plan.walk import join_conjuncts, split_conjuncts
from omnigraph.model.keys import canonicalize, derive_id
from omnigraph.model.schema import NodeType
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_SCALARS, PropertyType

# Returns the values that a property may have, given the parameters.
ValueChooser = Callable[[Mapping[str, Value]], tuple[SingleValue, ...]]
# Returns the candidate ids, given the parameters; None where these are not valid keys.
IdChooser = Callable[[Mapping[str, Value]], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Lookup of the nodes a condition names by their key.

    Attributes:
        ids: candidate ids; None, at run time, where the given values are not valid keys.
        left: remaining condition on the nodes found.
    """

    ids: IdChooser
    left: Expression | None


def find_key_lookup(node: NodeType, variable: str, condition: Expression | None) -> KeyLookup | None:
    """Return the key lookup for a scan whose condition fixes the key; None where all nodes must be scanned."""
    if condition is None or not node.is_keyed:
        return None
    fixed: dict[str, ValueChooser] = {}
    left: list[Expression] = []
    exact = {key.name for key in node.key if key.type.scalar not in FLOAT_SCALARS}
    for conjunct in split_conjuncts(condition):
        found = _fixed_property(conjunct, variable)
        if found is None or found[0] in fixed:
            left.append(conjunct)
            continue
        fixed.setdefault(*found)
        # Floats of two widths can have one text and differ.
        if found[0] not in exact:
            left.append(conjunct)
    keys = node.key
    if any(key.name not in fixed for key in keys):
        return None
    if len(keys) == 1:
        choices, of = fixed[keys[0].name], keys[0].type
        return KeyLookup(lambda values: _key_texts(choices(values), of), join_conjuncts(left))
    return KeyLookup(
        lambda values: _composite_ids(node, {key.name: fixed[key.name](values) for key in keys}), join_conjuncts(left)
    )


def _fixed_property(condition: Expression, variable: str) -> tuple[str, ValueChooser] | None:
    """Return the property that a condition fixes to one of some values, and these."""
    match condition:
        case ex.Compare(op=ex.CompareOp.EQUAL, left=ex.Property(variable=own, name=name), right=other):
            pass
        case ex.Compare(op=ex.CompareOp.EQUAL, left=other, right=ex.Property(variable=own, name=name)):
            pass
        case ex.Member(item=ex.Property(variable=own, name=name), items=other, negated=False):
            pass
        case _:
            return None
    if own != variable:
        return None
    match other:
        case ex.Constant(value=value):
            choices = _non_null_values(value)
            return name, lambda _: choices
        case ex.Parameter(name=parameter):
            return name, lambda values: _non_null_values(values[parameter])
        case _:
            return None


def _non_null_values(value: Value) -> tuple[SingleValue, ...]:
    # Nothing equals null.
    items = value if isinstance(value, tuple) else (value,)
    return tuple(item for item in items if item is not None)


def _key_texts(values: Sequence[SingleValue], of: PropertyType) -> list[str] | None:
    texts = []
    for value in values:
        usable = _to_key_type(value, of)
        if usable is None:
            return None
        try:
            texts.append(canonicalize(usable, of))
        except ValueError:
            return None
    return texts


def _composite_ids(node: NodeType, values: dict[str, tuple[SingleValue, ...]]) -> list[str] | None:
    if any(not choices for choices in values.values()):
        return []
    single = {}
    for key in node.key:
        choices = values[key.name]
        usable = _to_key_type(choices[0], key.type) if len(choices) == 1 else None
        if usable is None:
            return None
        single[key.name] = usable
    try:
        return [derive_id(node, single)]
    except ValueError:
        return None


def _to_key_type(value: SingleValue, of: PropertyType) -> str | bool | int | float | date | datetime | None:
    """Convert a value to the property's type; None where that is not certain."""
    if of.scalar in INTEGER_SCALARS and isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value
