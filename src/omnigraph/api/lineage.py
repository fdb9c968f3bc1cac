"""The history of one entity, as callers see it."""

from itertools import islice

from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch import blame as blaming
from omnigraph.branch.entity_log import Entity, events, shown
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.transaction.parts import Parts


def log_of(
    at: Snapshot, parts: Parts, schemas: Schemas, type_name: str, entity_id: str, *, limit: int | None
) -> list[EntityEvent]:
    """What happened to an entity; see `Graph.log_of`."""
    found = events(parts, schemas.of, _entity(at, type_name, entity_id), at.record, head=at.record)
    return list(islice(shown(found), limit))


def blame(at: Snapshot, parts: Parts, schemas: Schemas, type_name: str, entity_id: str) -> Blame:
    """Who made an entity what it is; see `Graph.blame`."""
    return blaming.blame(parts, schemas.of, _entity(at, type_name, entity_id), at.record)


def _entity(at: Snapshot, type_name: str, entity_id: str) -> Entity:
    found = at.entity(type_name)
    return Entity(at.record.tables[found.type_key].table, found.type_id, entity_id)
