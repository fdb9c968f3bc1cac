"""The schema a write is made under, with its rules, and what to do when the branch has moved on to another."""

from dataclasses import dataclass

from omnigraph.model.schema import Schema
from omnigraph.transaction.constraint_rules.rules import Rules
from omnigraph.transaction.staging import Staging


@dataclass(frozen=True, slots=True)
class Accepted:
    """A schema that some commit names.

    Attributes:
        digest: what commits call it.
        schema: the types.
        rules: what must hold.
    """

    digest: str
    schema: Schema
    rules: Rules


class SchemaMovedError(Exception):
    """The branch has another schema than the write was made under: make it anew. Never reaches a caller of the API."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


def refuse_other_schema(accepted: Accepted, staging: Staging) -> None:
    """Stop a write whose statements were bound, or whose rows were converted, under another schema.

    Raises:
        SchemaMovedError: they were.
    """
    if staging.schema != accepted.digest:
        raise SchemaMovedError(staging.schema)
