"""Conditional puts for an object store that has none, decided by an external store.

A conditional put takes four steps, and the second is the moment the object exists:

    1. stage     put the bytes under a unique name nobody lists
    2. decide    put-if-absent (root, path) → staged name in the external store
    3. finalise  copy the staged object to its path
    4. repoint   let the external entry name the path itself; then the staged object can go

A writer may die after any of them. Readers that meet an entry still naming a staged object do steps 3 and 4 before they
answer, any number of them at once, and refuse to answer when they cannot. Objects created this way never change, so one
found at its path needs no asking; only one that is absent does.

The external store knows a graph by its own id, so that every spelling of an address and every mount point of a folder
is one graph; only the stamp itself, which names that id, is known by the address.

Invariants:
    No reader is given bytes from a staged object.
    A reader who knows nothing of the external store misses at most objects whose writer died between 2 and 3.
    A copy of the folder made elsewhere is complete: what lies at its path exists.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import FormatError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import create
from omnigraph.storage.external_store import ExternalEntry, ExternalStore
from omnigraph.storage.object_store import (
    Listed,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
    check_path,
    check_prefix,
    prove_by_trying,
)
from omnigraph.storage.records.read import read_stamp

STAGED_FOLDER = "__staged/"
# Where an external store keeps its own id: no root has an empty name.
_FENCE, _FENCE_ID = "", "fence"
# The first on-disk format whose graphs are known by their id.
_KNOWN_BY_ID_SINCE = 2


class ExternallyFencedStore:
    """The whole port over a store that needs only get, list, put, copy and delete."""

    def __init__(
        self, inner: ObjectStore, external: ExternalStore, *, ids: IdSource | None = None, clock: Clock | None = None
    ) -> None:
        """Fence `inner`, whose put-if-absent is never used, by `external`."""
        self._inner = inner
        self._external = external
        self._clock = clock or SystemClock()
        self._ids = ids or UlidSource()
        self._graph = ""  # its id, once its stamp was read or written through this store

    @property
    def uri(self) -> str:
        """Where the root is."""
        return self._inner.uri

    @property
    def is_fenced_outside(self) -> bool:
        """That is what it is for."""
        return True

    def fence_id(self) -> str:
        """The id of the external store itself, made when it is first needed."""
        fresh = self._ids.new()
        entry = self._external.get(_FENCE, _FENCE_ID) or create(
            lambda: self._external.put_if_absent(_FENCE, _FENCE_ID, fresh),
            lambda: self._external.get(_FENCE, _FENCE_ID),
            clock=self._clock,
        )
        return fresh if entry is None else entry.location

    @property
    def is_near(self) -> bool:
        """As the store behind this one."""
        return self._inner.is_near

    @property
    def table_options(self) -> Mapping[str, str]:
        """With which options the table library opens the same place."""
        return self._inner.table_options

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        _check(path)
        try:
            return self._noticed(path, self._inner.get(path))
        except ObjectNotFound:
            entry = self._external.get(self._root_of(path), path)
            if entry is None:
                raise
            # Final by now means that somebody finished it, or deleted it, since we looked.
            if not entry.is_final:
                self._synchronise(entry)
            return self._inner.get(path)

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        check_prefix(prefix)
        self._synchronise_below(prefix)
        if prefix:
            return self._inner.list(prefix, limit=limit)
        visible = (listed for listed in self._inner.list("") if not _is_staged(listed.path))
        return islice(visible, limit)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix`, in order."""
        check_prefix(prefix)
        self._synchronise_below(prefix)
        return (name for name in self._inner.list_folders(prefix) if not _is_staged(f"{prefix}{name}/"))

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object; the external store has no part in it."""
        _check(path)
        self._inner.put(path, self._noticed(path, body))

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds."""
        _check(path)
        if self._is_there(path):
            # The external store may not know it: the folder was copied here, or the object came by a plain put.
            raise ObjectExists(f"there is an object {path!r} in {self.uri} already", path=path)
        staged = f"{STAGED_FOLDER}{path}.{self._ids.new()}.staged"
        self._inner.put(staged, body)
        self._decide(path, staged)
        # The object exists from here on. What is not finished now, the next reader finishes.
        self._noticed(path, body)
        is_there = True
        with contextlib.suppress(StoreError):
            is_there = self._synchronise(ExternalEntry(path, staged)) or self._holds(path, body)
        if not is_there:
            raise OutcomeUnknown(f"what was staged for {path!r} in {self.uri} was taken away meanwhile", path=path)

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        _check(source)
        _check(target)
        try:
            self._inner.copy(source, target)
        except ObjectNotFound:
            entry = self._external.get(self._root_of(source), source)
            if entry is None:
                raise
            if not entry.is_final:
                self._synchronise(entry)
            self._inner.copy(source, target)

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        _check(path)
        try:
            removed = self._external.delete(self._root_of(path), path)
        except OutcomeUnknown as error:
            raise StoreTransient(str(error), path=path) from error  # deleting twice does no harm
        # The staged object goes before the final one: a reader about to finish it can then not bring it back.
        if removed is not None and not removed.is_final:
            self._inner.delete(removed.location)
        self._inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, one after the other."""
        for path in paths:
            self.delete(path)

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively, and what writers that died have staged for it."""
        check_prefix(prefix)
        try:
            for root in self._roots_of(prefix):
                self._external.delete_prefix(root, prefix)
        except OutcomeUnknown as error:
            raise StoreTransient(str(error), path=prefix) from error
        self._inner.delete_prefix(STAGED_FOLDER + prefix)
        self._inner.delete_prefix(prefix)

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Temporary files whose writers died, and staged objects that can never be published."""
        found = list(self._inner.leftovers(before_us=before_us, delete=delete))
        return found + ([Listed(path, 0, 0) for path in self.sweep_staged()] if delete else [])

    def identity(self, path: str) -> tuple[int, ...] | None:
        """As the store behind this one knows it."""
        return self._inner.identity(path)

    def make_durable(self, paths: Sequence[str]) -> None:
        """Return only when these files would survive losing power."""
        self._inner.make_durable(paths)

    def sync_always(self) -> None:
        """As the store behind this one."""
        self._inner.sync_always()

    def prove_put_if_absent(self) -> int:
        """Put one fresh path twice; the second must be refused."""
        return prove_by_trying(self, self._ids)

    def sweep_staged(self) -> Sequence[str]:
        """Delete staged objects of dead writers whose path another writer has won.

        Staged bytes whose path nobody has yet are left alone; their writer may only be slow.
        """
        swept = []
        for listed in self._inner.list(STAGED_FOLDER):
            path = _target_of(listed.path)
            entry = self._external.get(self._root_of(path), path)
            if entry is not None and entry.location != listed.path:
                self._inner.delete(listed.path)
                swept.append(listed.path)
        return swept

    def _decide(self, path: str, staged: str) -> None:
        """Step 2. On return the object is ours; where it certainly is not, the staged bytes are gone."""
        sent = False  # whether a request of ours may still be on its way

        def put() -> None:
            nonlocal sent
            try:
                self._claim(path, staged)
            except OutcomeUnknown:
                sent = True
                raise

        try:
            found = create(put, lambda: self._living(path), clock=self._clock)
        except OutcomeUnknown as fault:
            if not sent:
                self._discard(staged)
                raise StoreTransient(str(fault), path=path) from fault
            raise OutcomeUnknown(f"the external store never said who created {path!r}", path=path) from fault
        except StoreError:
            self._discard(staged)
            raise
        if found is not None and found.location != staged:
            # Staged bytes are never deleted on a guess.
            if not sent:
                self._discard(staged)
            raise ObjectExists(f"there is an object {path!r} in {self.uri} already", path=path)

    def _claim(self, path: str, staged: str) -> None:
        """Create the entry, or take it over where its object is gone: it must not block the path for ever."""
        try:
            self._external.put_if_absent(self._root_of(path), path, staged)
        except ObjectExists:
            entry = self._external.get(self._root_of(path), path)
            is_stale = entry is not None and entry.is_final and not self._is_there(path)
            if not is_stale or not self._external.replace(self._root_of(path), path, expected=path, location=staged):
                raise

    def _living(self, path: str) -> ExternalEntry | None:
        """The entry of a path; None also where its object was deleted, or never copied with its folder."""
        entry = self._external.get(self._root_of(path), path)
        return None if entry is not None and entry.is_final and not self._is_there(path) else entry

    def _noticed(self, path: str, body: bytes) -> bytes:
        """The bytes of an object; those of the stamp say by which id the external store knows the graph."""
        if path != paths.STAMP:
            return body
        try:
            stamp = read_stamp(body, path=paths.absolute(self, path))
        except FormatError:
            return body
        graph = stamp.graph if stamp.format >= _KNOWN_BY_ID_SINCE else ""
        if graph and graph != self._graph:
            # What writers that knew the graph by its address have left half done.
            for entry in self._external.unfinished(self.uri, ""):
                if not self._is_there(entry.path):
                    self._inner.copy(entry.location, entry.path)
                self._external.replace(self.uri, entry.path, expected=entry.location, location=entry.path)
        self._graph = graph
        return body

    def _root_of(self, path: str) -> str:
        """Under which name the external store knows an object: the graph's id, or the address where there is none."""
        return self.uri if path == paths.STAMP else self._graph or self.uri

    def _roots_of(self, prefix: str) -> set[str]:
        return {self._root_of(prefix)} if prefix else {self._root_of(prefix), self.uri}

    def _synchronise_below(self, prefix: str) -> None:
        for root in self._roots_of(prefix):
            for entry in self._external.unfinished(root, prefix):
                if not self._is_there(entry.path):
                    self._synchronise(entry)
                else:
                    self._repoint(entry)

    def _synchronise(self, entry: ExternalEntry) -> bool:
        """Do steps 3 and 4 for an object that is not at its path; safe for any caller, any number of times.

        Bytes are staged before step 2 and go after step 4, so an entry without them came too late: from a request that
        was long on its way, or after a sweep that had seen the path taken. It can come to nothing, and is removed.

        Returns:
            Whether the bytes were there.
        """
        try:
            self._inner.copy(entry.location, entry.path)
        except ObjectNotFound:
            root = self._root_of(entry.path)
            newer = self._external.get(root, entry.path)
            if newer is not None and newer != entry and not newer.is_final:
                self._synchronise(newer)
            elif newer == entry and not self._is_there(entry.path):
                self._external.delete(root, entry.path, expected=entry.location)
            return False  # deleted since, or somebody else was faster
        self._repoint(entry)
        return True

    def _repoint(self, entry: ExternalEntry) -> None:
        try:
            self._external.replace(self._root_of(entry.path), entry.path, expected=entry.location, location=entry.path)
        except OutcomeUnknown:
            if self._external.get(self._root_of(entry.path), entry.path) == entry:
                raise
        self._discard(entry.location)

    def _is_there(self, path: str) -> bool:
        return self._holds(path, None)

    def _holds(self, path: str, body: bytes | None) -> bool:
        """True if there is an object at a path, with these bytes where some are given."""
        try:
            found = self._inner.get(path)
        except ObjectNotFound:
            return False
        return body is None or found == body

    def _discard(self, staged: str) -> None:
        # Left behind it harms nobody, and `sweep_staged` finds it.
        with contextlib.suppress(StoreError):
            self._inner.delete(staged)


def _is_staged(path: str) -> bool:
    return path.startswith(STAGED_FOLDER)


def _target_of(staged: str) -> str:
    return staged.removeprefix(STAGED_FOLDER).removesuffix(".staged").rpartition(".")[0]


def _check(path: str) -> None:
    check_path(path)
    if _is_staged(path):
        raise StoreRefused(f"{path!r} cannot be addressed: the folder is for objects under way", path=path)
