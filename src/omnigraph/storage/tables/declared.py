"""Which indexes the schema asks for, on which columns of a type's table.

Ids and the ends of edges have one without being asked: writers look rows up by them. Of what a type declares, keys,
unique values and `@index` over one property of a node become indexes; over several properties, over lists and blobs,
and on edges, none is built. The words of texts are indexed beside the tables, by whoever searches them.
"""

from collections.abc import Mapping

from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, Index, Key, Property, Unique
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.storage.tables.indexes import IndexKind, IndexSpec

_FEW_VALUES = frozenset({Scalar.BOOL})
_VECTOR_OPTIONS: Mapping[str, str | int] = {"metric": "l2"}


def declared_indexes(entity: EntityType) -> tuple[IndexSpec, ...]:
    """The indexes of a type's table."""
    system = system_indexes(entity)
    if isinstance(entity, EdgeType):
        return system
    searched = _columns(entity, Index) | _columns(entity, Key)
    looked_up = searched | _columns(entity, Unique)
    own = [
        _spec(property_.name, kind)
        for property_ in entity.properties
        if property_.name in looked_up
        for kind in _kinds(property_.type, is_searched=property_.name in searched)
    ]
    return (*system, *own)


def searched_texts(entity: EntityType) -> tuple[Property, ...]:
    """The properties whose words are declared to be searched.

    Returns:
        Texts of nodes with an `@index` of their own, in the order of their names.
    """
    if isinstance(entity, EdgeType):
        return ()
    searched = _columns(entity, Index)
    return tuple(
        property_
        for property_ in entity.properties
        if property_.name in searched and property_.type.is_string and not property_.type.is_enum
    )


def system_indexes(entity: EntityType) -> tuple[IndexSpec, ...]:
    """The indexes that every table of its kind has: on ids, and on both ends of edges."""
    columns = (ID, SRC, DST) if isinstance(entity, EdgeType) else (ID,)
    return tuple(_spec(column, IndexKind.BTREE) for column in columns)


def _columns(entity: EntityType, kind: type[Index | Key | Unique]) -> set[str]:
    """The properties that a constraint of a kind names alone; of a key, each."""
    return {
        name
        for constraint in entity.constraints
        if isinstance(constraint, kind) and (kind is Key or len(constraint.properties) == 1)
        for name in constraint.properties
    }


def _kinds(of: PropertyType, *, is_searched: bool) -> tuple[IndexKind, ...]:
    """The indexes a property gets.

    Substrings are looked for in those that are declared to be searched; equal values in all others too.
    """
    if of.list or of.is_blob:
        return ()
    if of.is_vector:
        return (IndexKind.IVF_FLAT,)
    if of.is_enum or of.scalar in _FEW_VALUES:
        return (IndexKind.BITMAP,)
    if of.is_string and is_searched:
        return (IndexKind.BTREE, IndexKind.NGRAM)
    return (IndexKind.BTREE,)


def _spec(column: str, kind: IndexKind) -> IndexSpec:
    return IndexSpec(f"{column}_{kind.lower()}", column, kind, _VECTOR_OPTIONS if kind.is_vector else {})
