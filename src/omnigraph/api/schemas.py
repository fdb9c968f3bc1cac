"""Accepted schemas: stored under their digests, read once, and remembered with their rules."""

from collections.abc import Callable
from typing import TypeVar

from omnigraph import limits
from omnigraph.errors import ConflictError, InvalidRequestError, NotFoundError
from omnigraph.lru import LruCache
from omnigraph.transaction.accepted import Accepted, SchemaMovedError, accepted_schema
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.schema_files import read_schema, read_text

_Made = TypeVar("_Made")


class Schemas:
    """The schemas of one graph, at most so many in memory. Safe to use from several threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: LruCache[str, Accepted] = LruCache(limits.SCHEMA_RULES_MAX)
        self._last_seen: dict[str, str] = {}

    def of(self, digest: str) -> Accepted:
        """The schema that commits name by a digest.

        Raises:
            FormatError: it is not there, or damaged.
        """
        known = self._known.get(digest)
        if known is not None:
            return known
        schema = read_schema(self._parts.store, digest)
        # The first one stays: compiled queries are cached by the schema object they were made for.
        return self._known.setdefault(digest, accepted_schema(digest, schema))

    def text(self, digest: str) -> str:
        """The text of a schema, as it was accepted.

        Raises:
            FormatError: it is not there, or damaged.
        """
        return read_text(self._parts.store, digest)

    def at_head(self, branch: str) -> Accepted:
        """The schema at the head of a branch.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self.of(self._parts.log.live_head(branch).schema)

    @staticmethod
    def refuse_moved(accepted: Accepted, digest: str) -> None:
        """Ask to be called again when a branch has another schema than was thought.

        Raises:
            SchemaMovedError: it has.
        """
        if accepted.digest != digest:
            raise SchemaMovedError(digest)

    def under_the_branch_schema(
        self, branch: str, make: Callable[[Accepted], _Made], *, wrong_under_any: Callable[[], bool] = lambda: False
    ) -> _Made:
        """Do something under the schema a branch has, again if it turns out to have another by now.

        The schema last seen on the branch is tried first: asking for the head would be one more request for a write
        that looks at the head anyway.

        Args:
            branch: the branch.
            make: what to do; raises `SchemaMovedError` to be called again.
            wrong_under_any: whether what was asked for is wrong whatever the schema; a fault is then told as it is.

        Returns:
            What `make` returned.

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
