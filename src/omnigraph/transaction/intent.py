"""Intents on the store: the notes of writes under way, and whether their writers still live.

    A  put             before the first effect; if it fails, the write stops with no effect at all
    B  complete        once every table is staged
    C  (publish)       the log entry carries the intent's id
    D  clear           failing to is a warning; the next sweep does it

Nothing needs an intent to be correct. They exist so that expensive work is not lost and garbage is found at once.
"""

import contextlib
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from omnigraph.clock import Clock
from omnigraph.errors import FormatError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.model.intent import Completed, Intent
from omnigraph.storage import paths
from omnigraph.storage.object_store import Listed, ObjectNotFound, ObjectStore, OutcomeUnknown, StoreError
from omnigraph.storage.records.read import completed_bytes, intent_bytes, read_completed, read_intent
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer
from omnigraph.transaction.settle import settled

_MAIN_SUFFIX = ".json"
_NOW_SUFFIX = ".now"
_BEAT_SUFFIX, _STAGED_SUFFIX = ".beat", ".staged"
_PARTS = (_BEAT_SUFFIX, _STAGED_SUFFIX, _MAIN_SUFFIX)  # the order of deletion: the note itself goes last

# The intents of writers at work in this process, whichever handle they use: nobody here may take them for dead.
_live: set[str] = set()
_live_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """An intent found on the store, as it is now.

    Attributes:
        intent: the note.
        completed: its second document, when everything was staged.
        modified_us: when its writer last showed life, by the store's own clock.
    """

    intent: Intent
    completed: Completed | None
    modified_us: int


class NotedWrite:
    """A write whose intent is on the store, as its writer holds it."""

    def __init__(self, store: ObjectStore, intent_id: str, heartbeat_s: float) -> None:
        self._store = store
        self._intent_id = intent_id
        # What of it may be on the store: of most writes the note alone, because they end before their first heartbeat.
        self._put = {_MAIN_SUFFIX}
        self._heart = Heartbeat(self._beat, every_s=heartbeat_s, name="intent-heartbeat")

    def begin(self) -> None:
        """Show life from now on."""
        self._heart.begin()

    def complete(self, completed: Completed) -> None:
        """Put the second document: from here on the write can be finished by anybody."""
        self._put.add(_STAGED_SUFFIX)
        self._store.put(paths.intent_completed(self._intent_id), completed_bytes(completed))

    def clear(self) -> None:
        """Delete the intent; its writer counts as alive meanwhile, so nobody takes what is left for interrupted."""
        self.fall_silent()
        _clear(self._store, self._intent_id, self._put)

    def fall_silent(self) -> None:
        """Stop showing life."""
        self._heart.fall_silent()

    def _beat(self) -> None:
        self._put.add(_BEAT_SUFFIX)
        self._store.put(paths.intent_heartbeat(self._intent_id), b"")


def _clear(store: ObjectStore, intent_id: str, parts: Collection[str]) -> None:
    for suffix in _PARTS:
        if suffix in parts:
            store.delete(f"{paths.RECOVERY}{intent_id}{suffix}")


class Intents:
    """The `__recovery/` folder."""

    def __init__(self, store: ObjectStore, *, clock: Clock, ids: IdSource, heartbeat_s: float, stale_s: float) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._heartbeat_s = heartbeat_s
        self._stale_s = stale_s
        self._waited_for: dict[str, float] = {}

    # -- the writer's side --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def noted(self, intent: Intent) -> Iterator["NotedWrite"]:
        """Put the intent and, while the block runs, show that its writer lives."""
        with _live_lock:
            _live.add(intent.id)
        noted = NotedWrite(self._store, intent.id, self._heartbeat_s)
        try:
            self._put(intent)
            noted.begin()
            yield noted
        finally:
            noted.fall_silent()
            with _live_lock:
                _live.discard(intent.id)

    def _put(self, intent: Intent) -> None:
        try:
            settled(self._store, paths.intent(intent.id), intent_bytes(intent), clock=self._clock)
        except StoreError as fault:
            # It may be there all the same. If it stays, whoever finds it undoes a write that did nothing.
            with contextlib.suppress(StoreError):
                _clear(self._store, intent.id, (_MAIN_SUFFIX,))
            if isinstance(fault, OutcomeUnknown):
                raise UnavailableError(f"the write could not be noted, so nothing was done: {fault}") from fault
            raise

    def stands(self, intent_id: str) -> bool:
        """True if an intent's note is on the store. One request."""
        try:
            self._store.get(paths.intent(intent_id))
        except ObjectNotFound:
            return False
        return True

    def clear(self, intent_id: str) -> None:
        """Delete an intent and what belongs to it, the note itself last."""
        _clear(self._store, intent_id, _PARTS)

    # -- the healer's side --------------------------------------------------------------------------------------------

    def listed(self) -> dict[str, int]:
        """The intents there are, oldest first, each with the time its newest part was written. One request.

        Intents of writers alive in this process are left out: they need nobody.
        """
        newest: dict[str, int] = {}
        noted: set[str] = set()
        for listed in self._store.list(paths.RECOVERY):
            intent_id, is_note = _split(listed)
            newest[intent_id] = max(newest.get(intent_id, 0), listed.modified_us)
            if is_note:
                noted.add(intent_id)
        with _live_lock:
            for gone in self._waited_for.keys() - noted:
                del self._waited_for[gone]
            return {each: newest[each] for each in sorted(noted - _live)}

    def waited_for_until(self, intent_id: str, until: float) -> float:
        """Until when writers here wait for an intent that is listed: as long as the first of them said."""
        with _live_lock:
            return self._waited_for.setdefault(intent_id, until)

    def everything(self) -> list[LeftBehind]:
        """Every intent on the store, those of writers alive in this process too. One request, and two for each.

        Raises:
            FormatError: one cannot be read, so nobody can say what it needs.
        """
        noted = {}
        for listed in self._store.list(paths.RECOVERY):
            intent_id, is_note = _split(listed)
            if is_note:
                noted[intent_id] = listed.modified_us
        found = [self.read(intent_id, modified_us=modified_us) for intent_id, modified_us in noted.items()]
        return [each for each in found if each is not None]

    def read(self, intent_id: str, *, modified_us: int) -> LeftBehind | None:
        """An intent as it is now; None when it was cleared meanwhile.

        Raises:
            FormatError: it cannot be read; the file is kept.
        """
        path = paths.intent(intent_id)
        where = paths.absolute(self._store, path)
        try:
            intent = read_intent(self._store.get(path), path=where)
        except ObjectNotFound:
            return None
        if intent.id != intent_id:
            raise FormatError(f"the intent {where} belongs elsewhere: it says it is {intent.id}", path=where)
        staged = paths.intent_completed(intent_id)
        try:
            completed = read_completed(self._store.get(staged), path=paths.absolute(self._store, staged))
        except ObjectNotFound:
            completed = None
        if completed is not None and completed.intent != intent_id:
            where = paths.absolute(self._store, staged)
            raise FormatError(
                f"the staged note {where} belongs elsewhere: it says it is {completed.intent}", path=where
            )
        return LeftBehind(intent, completed, modified_us)

    def is_alive(self, found: LeftBehind) -> bool:
        """Whether the writer may still be at work. On its own host its process tells; elsewhere its heartbeat."""
        writer = found.intent.writer
        here = this_writer()
        if (writer.host, writer.pid, writer.started) == (here.host, here.pid, here.started):
            with _live_lock:
                return found.intent.id in _live
        if has_ended(writer, here):
            return False
        return self.store_now_us() - found.modified_us < self._stale_s * 1_000_000

    def store_now_us(self) -> int:
        """The store's own idea of now: hosts' clocks may differ, the store's timestamps agree with each other."""
        name = f"{paths.RECOVERY}{self._ids.new()}{_NOW_SUFFIX}"
        self._store.put(name, b"")
        try:
            asked = {
                listed.path: listed.modified_us
                for listed in self._store.list(paths.RECOVERY)
                if listed.path.endswith(_NOW_SUFFIX)
            }
        finally:
            self._store.delete(name)
        now_us = asked.get(name, self._clock.now_us())
        for path, modified_us in asked.items():
            if now_us - modified_us > self._stale_s * 1_000_000:
                self._store.delete(path)  # of a healer that died while it asked
        return now_us


def _split(listed: Listed) -> tuple[str, bool]:
    name = listed.path.removeprefix(paths.RECOVERY)
    stem, _, suffix = name.partition(".")
    return stem, f".{suffix}" == _MAIN_SUFFIX
