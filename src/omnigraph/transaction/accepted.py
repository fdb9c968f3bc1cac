"""The schema a write is made under, with its rules, and what to do when the branch has moved on to another."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.model.schema import Schema
from omnigraph.storage.layout import table_schemas
from omnigraph.transaction.constraint_rules.rules import Rules, rules_of
from omnigraph.transaction.write_set import WriteSet


@dataclass(frozen=True, slots=True)
class Accepted:
    """A schema that some commit names."""

    digest: str  # what commits call it
    schema: Schema
    rules: Rules
    columns: Mapping[str, pa.Schema]  # of every table, by type key


def accepted_schema(digest: str, schema: Schema) -> Accepted:
    """A schema with everything that follows from it, worked out once."""
    return Accepted(digest, schema, rules_of(schema), table_schemas(schema))


class SchemaMovedError(Exception):
    """The branch has another schema than the write was prepared under: prepare it again. Never reaches API callers."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


def refuse_other_schema(accepted: Accepted, write_set: WriteSet) -> None:
    """Stop a write whose statements were bound, or whose rows were converted, under another schema."""
    if write_set.schema != accepted.digest:
        raise SchemaMovedError(write_set.schema)
