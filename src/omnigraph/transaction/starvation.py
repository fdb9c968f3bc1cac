"""Starvation guard: after a few lost races, a write asks the writers of other processes to pause.

What rests on whole types (a load on Spark, a merge that takes tables over, a replacement) loses to every small write
there, and those are always faster. And of two processes that write rows of one type, the one that has just published
begins its next write at once, while the other rebases. So a write that keeps losing leaves an intent that names its
tables and a duration. Every write lists the intents before it begins, so noticing it costs nothing; it waits until the
intent is gone or the time is over. Writers of one process queue for each other anyway.

Nothing is wrong without it, and no pause outlives its time or its process. The intent also keeps prunes from passing
the commit the writer starts from.
"""

from collections.abc import Iterable
from contextlib import ExitStack, suppress

from omnigraph import limits
from omnigraph.clock import backoff_s
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.intent import Intent
from omnigraph.storage.object_store import StoreError
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import NotedWrite
from omnigraph.transaction.liveness import has_ended, this_writer
from omnigraph.transaction.publish import Draft

# How often a paused writer looks whether it may go on: the shorter the pause, the more often.
_POLL_MS_MIN, _POLL_MS_MAX, _POLLS = 5, 250, 100


class StarvationGuard:
    """Counts the lost races of one write, and asks other processes to pause once there are many."""

    def __init__(self, context: GraphContext, draft: Draft) -> None:
        self._context = context
        self._draft = draft
        self._losses = 0
        self._longest_s = 0.0
        self._paused_until = 0.0
        self._request = ExitStack()
        self._noted: NotedWrite | None = None

    def __enter__(self) -> "StarvationGuard":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, (Exception, KeyboardInterrupt)):
            self._withdraw()
        self._request.close()

    def lost_race(self, took_s: float, types: frozenset[str]) -> None:
        """Count a lost attempt that took so long and read or changed these types; request a pause after many."""
        self._losses += 1
        self._longest_s = max(self._longest_s, took_s)
        if self._losses >= limits.STARVED_AFTER_LOSSES:
            self.request_pause(types)

    def request_pause(self, types: frozenset[str]) -> None:
        """Ask other processes to leave these types alone, unless a request still stands."""
        if self._context.clock.monotonic() < self._paused_until:
            return
        self._withdraw()
        wanted_s = max(limits.STARVED_PAUSE_S_MIN, self._longest_s * limits.STARVED_PAUSE_ATTEMPTS)
        seconds = min(limits.STARVED_PAUSE_S_MAX, wanted_s)
        with suppress(GraphError, StoreError):  # then it retries without
            self._put(seconds, types)
            self._paused_until = self._context.clock.monotonic() + seconds

    def _put(self, seconds: float, types: frozenset[str]) -> None:
        head = self._context.log.live_head(self._draft.branch)
        intent = Intent(
            id=self._context.ids.new(),
            kind=self._draft.kind,
            branch=self._draft.branch,
            base_number=head.number,
            base_commit=head.commit,
            actor=self._draft.actor,
            writer=this_writer(),
            tables={key: pin for key, pin in head.tables.items() if key in types},
            created_at_us=self._context.clock.now_us(),
            pause_s=seconds,
        )
        self._noted = self._request.enter_context(self._context.intents.noted(intent))
        reached(Failpoint.STARVATION_PAUSE_REQUESTED)

    def _withdraw(self) -> None:
        with suppress(StoreError):  # the next write finds the intent, and that its writer is gone
            if self._noted is not None:
                self._noted.clear()
        self._noted = None
        self._request.close()


def pause_for(context: GraphContext, branch: str, types: frozenset[str], starved: Iterable[Intent]) -> None:
    """Wait for starved writers of other processes, each no longer than it asks from when it was first seen here.

    Without `types`, a write that is about to begin may change any type.
    """
    for intent in starved:
        if intent.branch == branch and not (types and types.isdisjoint(intent.tables)):
            _wait_for(context, intent)


def _wait_for(context: GraphContext, intent: Intent) -> None:
    until = context.clock.monotonic() + min(intent.pause_s, limits.STARVED_PAUSE_S_MAX)
    until = context.intents.waited_for_until(intent.id, until)
    polls, most_ms = 0, min(_POLL_MS_MAX, max(_POLL_MS_MIN, int(intent.pause_s * 1_000 / _POLLS)))
    with suppress(StoreError, GraphError):  # a writer that cannot look does not wait
        while context.clock.monotonic() < until and not has_ended(intent.writer, this_writer()):
            polls += 1
            context.clock.sleep(backoff_s(polls, first_ms=_POLL_MS_MIN, most_ms=most_ms))
            if not context.intents.stands(intent.id):
                return
