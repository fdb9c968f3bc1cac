"""The words about records that stand in each other's way, or in the way of what is there; both engines say these."""

import pyarrow as pa

from omnigraph.errors import ConflictError, ConstraintError
from omnigraph.model.conflict import KeyConflict
from omnigraph.storage.json_values import to_json
from omnigraph.transaction.constraint_rules.rules import Distinct


def there_already(type_key: str, entity_id: str) -> ConflictError:
    """An entity that may not be there, and is."""
    found = KeyConflict(type_key, entity_id)
    return ConflictError(str(found), conflicts=(found,), code="key_conflict")


def repeated(type_key: str, entity_id: str) -> ConflictError:
    """Two records with one id."""
    return ConflictError(
        f"{type_key} '{entity_id}' occurs twice in one load",
        conflicts=(KeyConflict(type_key, entity_id),),
        code="key_conflict",
    )


def shared(rule: Distinct, row: pa.Table, holder: str, other: str) -> ConstraintError:
    """Two entities with one tuple; `row` has it."""
    value = tuple(to_json(row.column(column))[0] for column in rule.columns)
    return ConstraintError(
        rule.breach(value, holder, other), type=rule.type_name, columns=rule.columns, ids=(holder, other)
    )
