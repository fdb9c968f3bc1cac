"""Nodes that a condition names by their key: found by id instead of by looking at all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, SingleValue, Value
from omnigraph.language.plan.walk import join_conjuncts, split_conjuncts
from omnigraph.model.keys import canonicalize, derive_id
from omnigraph.model.schema import NodeType
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_SCALARS, PropertyType

# The values a property must have one of, given those of the parameters.
Choices = Callable[[Mapping[str, Value]], tuple[SingleValue, ...]]
# The ids among which nodes are, given the values of the parameters; None where these are no keys.
Choosing = Callable[[Mapping[str, Value]], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """How to find the nodes a condition names by their key.

    Attributes:
        ids: the ids among which they are; None, at run time, where the values given are no keys.
        left: what must still be judged on the nodes found.
    """

    ids: Choosing
    left: Expression | None


def lookup_for(node: NodeType, variable: str, condition: Expression | None) -> KeyLookup | None:
    """The lookup for a scan whose condition fixes the key.

    Args:
        node (NodeType): the type scanned.
        variable (str): what its nodes are bound to.
        condition (Expression | None): about them.

    Returns:
        KeyLookup | None: None where all nodes must be looked at.
    """
    if condition is None or not node.is_keyed:
        return None
    fixed: dict[str, Choices] = {}
    left: list[Expression] = []
    exact = {key.name for key in node.key if key.type.scalar not in FLOAT_SCALARS}
    for each in split_conjuncts(condition):
        found = _fixed(each, variable)
        if found is None or found[0] in fixed:
            left.append(each)
            continue
        fixed.setdefault(*found)
        # Floats of two widths can have one text and differ.
        if found[0] not in exact:
            left.append(each)
    keys = node.key
    if any(key.name not in fixed for key in keys):
        return None
    if len(keys) == 1:
        choices, of = fixed[keys[0].name], keys[0].type
        return KeyLookup(lambda values: _texts(choices(values), of), join_conjuncts(left))
    return KeyLookup(
        lambda values: _composite(node, {key.name: fixed[key.name](values) for key in keys}), join_conjuncts(left)
    )


def _fixed(condition: Expression, variable: str) -> tuple[str, Choices] | None:
    """The property that a condition fixes to one of some values, and these."""
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
            choices = _choices(value)
            return name, lambda _: choices
        case ex.Parameter(name=parameter):
            return name, lambda values: _choices(values[parameter])
        case _:
            return None


def _choices(value: Value) -> tuple[SingleValue, ...]:
    # Nothing equals null.
    each = value if isinstance(value, tuple) else (value,)
    return tuple(one for one in each if one is not None)


def _texts(values: Sequence[SingleValue], of: PropertyType) -> list[str] | None:
    texts = []
    for value in values:
        usable = _usable(value, of)
        if usable is None:
            return None
        try:
            texts.append(canonicalize(usable, of))
        except ValueError:
            return None
    return texts


def _composite(node: NodeType, values: dict[str, tuple[SingleValue, ...]]) -> list[str] | None:
    if any(not each for each in values.values()):
        return []
    single = {}
    for key in node.key:
        choices = values[key.name]
        usable = _usable(choices[0], key.type) if len(choices) == 1 else None
        if usable is None:
            return None
        single[key.name] = usable
    try:
        return [derive_id(node, single)]
    except ValueError:
        return None


def _usable(value: SingleValue, of: PropertyType) -> str | bool | int | float | date | datetime | None:
    """The value as one of the property's type; None where that is not for sure."""
    if of.scalar in INTEGER_SCALARS and isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value
