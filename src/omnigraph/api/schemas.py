"""Schemas of a graph: read by digest, and cached with their constraints."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from omnigraph import limits
from omnigraph.errors import ConflictError, GraphError, InvalidRequestError, NotFoundError
from omnigraph.lru import LruCache
from omnigraph.transaction.accepted import Accepted, SchemaMovedError, accepted_schema
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.schema_files import read_schema, read_text

_Made = TypeVar("_Made")


class _PropertyOrder:
    """The declared order of properties: one request when it is first needed, none for most queries."""

    def __init__(self, read_text: Callable[[], str]) -> None:
        self._read_text = read_text
        self._order: Mapping[str, Sequence[str]] | None = None

    def __call__(self) -> Mapping[str, Sequence[str]]:
        if self._order is None:
            from omnigraph.language.schema import property_order  # noqa: PLC0415  (most queries do without it: test_startup)

            try:
                self._order = property_order(self._read_text())
            except GraphError:  # a damaged text costs the order, nothing else
                self._order = {}
        return self._order

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return partial, (dict, self())


class Schemas:
    """The schemas of one graph, a bounded number in memory. Thread-safe."""

    def __init__(self, parts: GraphContext) -> None:
        self._parts = parts
        self._known: LruCache[str, Accepted] = LruCache(limits.SCHEMA_RULES_MAX)
        self._last_seen: dict[str, str] = {}

    def of(self, digest: str) -> Accepted:
        """Return the schema with a digest.

        Raises:
            FormatError: it is missing or damaged.
        """
        known = self._known.get(digest)
        if known is not None:
            return known
        order = _PropertyOrder(partial(self.text, digest))
        schema = replace(read_schema(self._parts.store, digest), property_order=order)
        # The first one stays: compiled queries are cached by the schema object they were made for.
        return self._known.setdefault(digest, accepted_schema(digest, schema))

    def text(self, digest: str) -> str:
        """Return the text of a schema, as it was applied.

        Raises:
            FormatError: it is missing or damaged.
        """
        return read_text(self._parts.store, digest)

    def at_head(self, branch: str) -> Accepted:
        """Return the schema at the head of a branch.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self.of(self._parts.log.live_head(branch).schema)

    @staticmethod
    def refuse_moved(accepted: Accepted, digest: str) -> None:
        """Require that a branch still has a schema; the caller tries again with the new one.

        Raises:
            SchemaMovedError: it has another.
        """
        if accepted.digest != digest:
            raise SchemaMovedError(digest)

    def under_the_branch_schema(
        self, branch: str, make: Callable[[Accepted], _Made], *, wrong_under_any: Callable[[], bool] = lambda: False
    ) -> _Made:
        """Call `make` with the schema of a branch, and again if the branch has another schema by then.

        The schema last seen on the branch is tried first: reading the head would be one more request for a write that
        reads the head anyway.

        Args:
            branch: the branch to be written.
            make: runs the write; raises `SchemaMovedError` to be called again.
            wrong_under_any: whether the request is wrong under every schema; its error is then raised at once.

        Raises:
            ConflictError: the schema keeps changing.
        """
        for _ in range(limits.REDO_ATTEMPTS_MAX):
            digest = self._last_seen.get(branch)
            if digest is None:
                digest = self._parts.log.live_head(branch).schema
            accepted = self.of(digest)
            try:
                made = make(accepted)
            except SchemaMovedError as moved:
                self._last_seen[branch] = moved.digest
            except (InvalidRequestError, NotFoundError):
                if wrong_under_any():
                    raise
                # What is wrong under the schema last seen may be right under the one the branch has by now. Only what
                # is told before anything is written: any other fault may have come after the commit.
                newest = self._parts.log.live_head(branch).schema
                self._last_seen[branch] = newest
                if newest == digest:
                    raise
            else:
                self._last_seen[branch] = digest
                return made
        raise ConflictError(f"the schema of branch '{branch}' keeps changing; try again", code="too_busy")
