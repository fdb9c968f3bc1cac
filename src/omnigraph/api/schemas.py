"""Accepted schemas: stored under their digests, read once, and remembered with their rules."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from omnigraph import limits
from omnigraph.errors import ConflictError, FormatError, InvalidRequestError, NotFoundError
from omnigraph.model import schema_document
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore
from omnigraph.transaction.accepted import Accepted, SchemaMovedError, accepted_schema
from omnigraph.transaction.parts import Parts

_ALGORITHM = "sha256:"
_Made = TypeVar("_Made")


def store_schema(store: ObjectStore, text: str, schema: Schema) -> str:
    """Put an accepted schema, its text and its resolved form, before any commit names it.

    Args:
        store: of the graph.
        text: as it was written.
        schema: what it resolved to.

    Returns:
        The digest that commits name it by.
    """
    digest = schema_document.digest(schema)
    name = digest.removeprefix(_ALGORITHM)
    store.put(paths.schema_text(name), text.encode())
    store.put(paths.schema_resolved(name), schema_document.to_bytes(schema))
    return digest


class Schemas:
    """The schemas of one graph, at most so many in memory. Safe to use from several threads."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: OrderedDict[str, Accepted] = OrderedDict()
        self._last_seen: dict[str, str] = {}
        self._lock = threading.Lock()

    def of(self, digest: str) -> Accepted:
        """The schema that commits name by a digest.

        Raises:
            FormatError: it is not there, or damaged.
        """
        with self._lock:
            known = self._known.get(digest)
            if known is not None:
                self._known.move_to_end(digest)
                return known
        schema = schema_document.from_bytes(self._read(paths.schema_resolved(digest.removeprefix(_ALGORITHM))))
        if schema_document.digest(schema) != digest:
            raise FormatError(
                f"the schema stored as {digest} is another one; the graph is damaged", code="schema_damaged"
            )
        accepted = accepted_schema(digest, schema)
        with self._lock:
            # Whoever was first stays: compiled queries are remembered by the schema object they were made for.
            accepted = self._known.setdefault(digest, accepted)
            while len(self._known) > limits.SCHEMA_RULES_MAX:
                self._known.popitem(last=False)
        return accepted

    def text(self, digest: str) -> str:
        """The text of a schema, as it was accepted.

        Raises:
            FormatError: it is not there, or damaged.
        """
        path = paths.schema_text(digest.removeprefix(_ALGORITHM))
        try:
            return self._read(path).decode()
        except UnicodeDecodeError as fault:
            where = paths.absolute(self._parts.store, path)
            raise FormatError(f"the text of the schema {where} is damaged: {fault}", code="schema_damaged") from fault

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

    def _read(self, path: str) -> bytes:
        try:
            return self._parts.store.get(path)
        except ObjectNotFound:
            where = paths.absolute(self._parts.store, path)
            raise FormatError(f"a schema that a commit names is not there: {where}", code="schema_missing") from None
