"""Schemas that change while the graph is in use."""

from dataclasses import replace

from omnigraph.api.receipts import SchemaApplied
from omnigraph.api.schemas import Schemas
from omnigraph.language.schema import plan
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.storage import paths
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.evolve import evolution
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.schema_files import store_schema
from omnigraph.transaction.write import Receipt, write


def applied(
    parts: Parts,
    schemas: Schemas,
    branch: str,
    text: str,
    options: WriteOptions,
    *,
    allow_data_loss: bool,
    validated: bool,
) -> SchemaApplied:
    """Carry out the steps, as one commit.

    Raises:
        ParseError: the text is wrong.
        InvalidRequestError: a change cannot be made.
        ConstraintError: the data does not allow a change; it says how many entities are in the way.
        ConflictError: others keep changing the branch.
    """
    parts.refuse_read_only()
    name = paths.branch_name(branch)

    def under(accepted: Accepted) -> tuple[SchemaPlan, Receipt]:
        steps = plan(accepted.schema, text, validated=validated)
        steps.require_supported()
        if steps.is_empty:
            # Whoever applies what is there already must hear of it only if it is still there.
            head = parts.log.live_head(name)
            schemas.refuse_moved(accepted, head.schema)
            return steps, Receipt(None, head)
        how = options
        if allow_data_loss:
            steps = steps.with_data_loss()
            # In the same put: there is no moment at which the drop is done and the dropped can be read in history.
            how = replace(options, prune_previous=options.prune_previous or steps.drops_hard)
        digest = store_schema(parts.store, text, steps.schema)
        return steps, write(parts, name, evolution(parts, accepted, steps, digest), how)

    steps, receipt = schemas.under_the_branch_schema(name, under)
    entry = receipt.entry
    return SchemaApplied(name, steps, None if entry is None else entry.commit, (entry or receipt.head).number)
