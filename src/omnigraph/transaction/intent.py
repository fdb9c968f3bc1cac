"""Intents on the store: notes of running writes, and whether their writers are alive.

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

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.errors import ConflictError, FormatError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.model.conflict import DeclaredDead
from omnigraph.model.intent import Completed, Intent
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import Listed, ObjectNotFound, ObjectStore, OutcomeUnknown, StoreError
from omnigraph.storage.records.read import completed_bytes, intent_bytes, read_completed, read_intent
from omnigraph.transaction.conflicts import message_for
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer

_MAIN_SUFFIX = ".json"
_BEAT_SUFFIX, _STAGED_SUFFIX = ".beat", ".staged"
_PARTS = (_BEAT_SUFFIX, _STAGED_SUFFIX, _MAIN_SUFFIX)  # the order of deletion: the note itself goes last

# The intents of writers at work in this process, whichever handle they use: nobody here may take them for dead.
_live: set[str] = set()
_live_lock = threading.Lock()


@dataclass(slots=True)
class _Observed:
    """What this process knows of an intent."""

    written_us: tuple[int, ...]  # when its parts were written, by the store's clock
    since: float  # since when that has not changed, on this process's own monotonic clock
    intent: Intent | None = None  # its note, which never changes; None until it was read


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """An intent found on the store, as it is now."""

    intent: Intent
    completed: Completed | None  # its second document, when everything was staged
    modified_us: int  # when the note was put, by the store's own clock


class NotedWrite:
    """A write whose intent is on the store, as its writer holds it."""

    def __init__(self, intents: "Intents", store: ObjectStore, intent_id: str, heartbeat_s: float) -> None:
        self._intents = intents
        self._store = store
        self._intent_id = intent_id
        # What of it may be on the store: of most writes the note alone, because they end before their first heartbeat.
        self._put = {_MAIN_SUFFIX}
        self._heart = Heartbeat(self._beat, every_s=heartbeat_s, name="intent-heartbeat")
        self.begin, self.fall_silent = self._heart.begin, self._heart.fall_silent

    def check_stands(self) -> None:
        """Refuse to go on when recovery or a person has taken the intent away: a sweep may have taken its files."""
        conflict = DeclaredDead(self._intent_id, "")
        if not self._intents.stands(self._intent_id):
            raise ConflictError(message_for(conflict), conflicts=(conflict,))

    def put_at_us(self) -> int:
        """When it was put, by the store's clock; 0 where it is gone. One request."""
        path = paths.intent(self._intent_id)
        return next((listed.modified_us for listed in self._store.list(paths.RECOVERY) if listed.path == path), 0)

    def complete(self, completed: Completed) -> None:
        """Put the second document: from here on the write can be finished by anybody."""
        self._put.add(_STAGED_SUFFIX)
        self._store.put(paths.intent_completed(self._intent_id), completed_bytes(completed))

    def clear(self) -> None:
        """Delete the intent; its writer counts as alive meanwhile, so recovery leaves the rest alone."""
        self.fall_silent()
        self._intents.clear(self._intent_id, self._put)

    def _beat(self) -> None:
        self._put.add(_BEAT_SUFFIX)
        self._store.put(paths.intent_heartbeat(self._intent_id), b"")


class Intents:
    """The `__recovery/` folder."""

    def __init__(self, store: ObjectStore, *, clock: Clock, ids: IdSource, heartbeat_s: float, stale_s: float) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._heartbeat_s = heartbeat_s
        self._stale_s = stale_s
        self._waited_for: dict[str, float] = {}
        self._observed: dict[str, _Observed] = {}

    # -- the writer's side --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def noted(self, intent: Intent) -> Iterator["NotedWrite"]:
        """Put the intent and, while the block runs, show that its writer lives."""
        with _live_lock:
            _live.add(intent.id)
        noted = NotedWrite(self, self._store, intent.id, self._heartbeat_s)
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
            put_or_read(self._store, paths.intent(intent.id), intent_bytes(intent), clock=self._clock)
        except StoreError as fault:
            # It may be there all the same. If it stays, whoever finds it undoes a write that did nothing.
            with contextlib.suppress(StoreError):
                self.clear(intent.id, (_MAIN_SUFFIX,))
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

    def clear(self, intent_id: str, suffixes: Collection[str] = _PARTS) -> None:
        """Delete an intent and what belongs to it, the note itself last."""
        for suffix in _PARTS:
            if suffix in suffixes:
                self._store.delete(f"{paths.RECOVERY}{intent_id}{suffix}")

    # -- the healer's side --------------------------------------------------------------------------------------------

    def listed(self) -> list[str]:
        """The intents there are, oldest first, without those of writers alive in this process. One request."""
        written: dict[str, tuple[int, ...]] = {}
        noted: set[str] = set()
        for listed in self._store.list(paths.RECOVERY):
            intent_id, is_note = _split(listed)
            written[intent_id] = (*written.get(intent_id, ()), listed.modified_us)
            if is_note:
                noted.add(intent_id)
        now = self._clock.monotonic()
        with _live_lock:
            self._waited_for = {known: until for known, until in self._waited_for.items() if known in noted}
            before, self._observed = self._observed, {}
            for intent_id in sorted(noted - _live):
                known = before.get(intent_id)
                if known is None or known.written_us != written[intent_id]:
                    known = _Observed(written[intent_id], now, None if known is None else known.intent)
                self._observed[intent_id] = known
            return list(self._observed)

    def living(self, intent_id: str) -> Intent | None:
        """The note of a listed intent whose writer may still be at work; None where it has ended, or was cleared.

        One request the first time an intent is seen, none afterwards.
        """
        observed = self._observed.get(intent_id)
        if observed is None:
            return None
        if observed.intent is None:
            try:
                observed.intent = self._note(intent_id)
            except ObjectNotFound:
                return None
        return observed.intent if self._may_live(observed, observed.intent) else None

    def _may_live(self, observed: _Observed, intent: Intent) -> bool:
        """Whether a writer may still be at work: its process tells, if it can be looked up here; else its heartbeat.

        A heartbeat is stale when this process has seen it stand still for `stale_s` of its own time. A process that
        never looks that long goes by the times on the store, and allows for clocks that are far apart.
        """
        here = this_writer()
        if intent.writer.token == here.token:
            with _live_lock:
                return intent.id in _live
        if has_ended(intent.writer, here):
            return False
        silent_s = self._clock.monotonic() - observed.since
        shown_s = (self._clock.now_us() - max(observed.written_us)) / 1_000_000
        return silent_s < self._stale_s and shown_s < self._stale_s + limits.CLOCKS_APART_MAX_S

    def waited_for_until(self, intent_id: str, until: float) -> float:
        """Return until when writers here wait for a listed intent; the first of them decides."""
        with _live_lock:
            return self._waited_for.setdefault(intent_id, until)

    def everything(self) -> list[LeftBehind]:
        """Every intent on the store, those of writers alive in this process too. One request, and two for each."""
        noted = {}
        for listed in self._store.list(paths.RECOVERY):
            intent_id, is_note = _split(listed)
            if is_note:
                noted[intent_id] = listed.modified_us
        found = [self.read(intent_id, modified_us=modified_us) for intent_id, modified_us in noted.items()]
        return [intent for intent in found if intent is not None]

    def read(self, intent_id: str, *, modified_us: int = 0) -> LeftBehind | None:
        """An intent as it is now; None when it was cleared meanwhile."""
        try:
            intent = self._note(intent_id)
        except ObjectNotFound:
            return None
        staged = paths.intent_completed(intent_id)
        where = paths.absolute(self._store, staged)
        try:
            completed = read_completed(self._store.get(staged), path=where)
        except ObjectNotFound:
            return LeftBehind(intent, None, modified_us)
        if completed.intent != intent_id:
            raise FormatError(
                f"the staged note {where} belongs elsewhere: it says it is {completed.intent}", path=where
            )
        return LeftBehind(intent, completed, modified_us)

    def _note(self, intent_id: str) -> Intent:
        path = paths.intent(intent_id)
        where = paths.absolute(self._store, path)
        intent = read_intent(self._store.get(path), path=where)
        if intent.id != intent_id:
            raise FormatError(f"the intent {where} belongs elsewhere: it says it is {intent.id}", path=where)
        return intent

    def put_aside(self, intent_id: str) -> str:
        """Move an intent that cannot be read out of the way of writers; returns where its note is kept.

        A writer that still lives finds its intent gone when it meets a barrier, and stages again.
        """
        folder = f"{paths.QUARANTINE}{self._ids.new()}/"
        for suffix in _PARTS:
            path = f"{paths.RECOVERY}{intent_id}{suffix}"
            with contextlib.suppress(ObjectNotFound):
                self._store.copy(path, f"{folder}{path}")
        self.clear(intent_id)
        return f"{folder}{paths.intent(intent_id)}"


def _split(listed: Listed) -> tuple[str, bool]:
    name = listed.path.removeprefix(paths.RECOVERY)
    stem, _, suffix = name.partition(".")
    return stem, f".{suffix}" == _MAIN_SUFFIX
