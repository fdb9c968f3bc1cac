"""What every part of an open graph has: where it is, and its end."""

from dataclasses import replace
from functools import partial
from typing import Self

from omnigraph import limits
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import Reading, Snapshot
from omnigraph.embedding.choose import chosen
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.search.asked import Embedder
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


class OpenGraph:
    """An open graph: what it is, and how it ends. What can be done with it is in the classes made from this one."""

    def __init__(self, parts: Parts, schemas: Schemas, *, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX) -> None:
        engine = QueryEngine(
            parts.tables,
            parts.store,
            read_only=parts.read_only,
            clock=parts.clock,
            cache_bytes=cache_bytes,
            embedder=Embedder(partial(chosen, parts.settings.embeddings)),
        )
        self._parts = parts = replace(parts, finder=engine.finder)
        self._schemas = schemas
        self._reading = Reading(parts, schemas, engine)
        self._newest: Snapshot | None = None
        self._closed = False

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._parts.store.uri

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._parts.read_only

    # -- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Refuse further calls. Everything acknowledged is on the store already."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph at {self.uri}{', read-only' if self.read_only else ''}>"

    def _at_head(self, branch: str | None) -> Snapshot:
        """The newest state of a branch, for reads of our own: made again only when the branch has moved."""
        head = self._open().log.live_head(paths.branch_name(MAIN_BRANCH if branch is None else branch))
        newest = self._newest
        if newest is None or newest.record is not head:
            newest = self._newest = Snapshot(self._reading, head, head_of=head.branch)
        return newest

    def _open(self) -> Parts:
        if self._closed:
            raise InvalidRequestError("the graph was closed", code="closed")
        return self._parts
