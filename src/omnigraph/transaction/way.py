"""Making way: a write that keeps being overtaken asks the writers of other processes to wait for it.

What rests on whole types (a load on Spark, a merge that takes tables over, a replacement) loses to whoever writes a row
there meanwhile, and small writes are always faster. And of two processes that write rows of one type, the one that has
just published begins its next write at once, while the other moves its work on top. After a few losses a write leaves
an intent that names the tables, and for how long it asks. Every write looks at the intents before it begins, so that to
see it costs the others nothing; they wait until it is gone, or the time is over. Within a process they are in line
anyway.

It is a courtesy: nothing is wrong without it, nobody waits for it beyond its time, and none outlives its process.
The intent also keeps prunes from passing the commit the writer starts from.
"""

from collections.abc import Iterable
from contextlib import ExitStack, suppress

from omnigraph import limits
from omnigraph.clock import backoff_s
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.intent import Intent
from omnigraph.storage.object_store import StoreError
from omnigraph.transaction.intent import NotedWrite
from omnigraph.transaction.liveness import has_ended, this_writer
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.publish import Draft

# How often a writer that makes way looks whether it may go on: the shorter it is asked for, the more often.
_PAUSE_MS_MIN, _PAUSE_MS_MAX, _PAUSES = 5, 250, 100


class Overtaken:
    """The losses of one write, and what it asks of others."""

    def __init__(self, parts: Parts, draft: Draft) -> None:
        self._parts = parts
        self._draft = draft
        self._losses = 0
        self._longest_s = 0.0
        self._asked_until = 0.0
        self._asked = ExitStack()
        self._noted: NotedWrite | None = None

    def __enter__(self) -> "Overtaken":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, (Exception, KeyboardInterrupt)):
            self._take_back()
        self._asked.close()

    def again(self, took_s: float, types: frozenset[str]) -> None:
        """Count a loss; ask for way once there were many, and again when the others have waited long enough.

        Args:
            took_s (float): how long the attempt took.
            types (frozenset[str]): the type keys it rested on.
        """
        self._losses += 1
        self._longest_s = max(self._longest_s, took_s)
        if self._losses >= limits.WAY_ASKED_AFTER:
            self.ask(types)

    def ask(self, types: frozenset[str]) -> None:
        """Ask other processes to leave these types alone, unless they are asked already."""
        if self._parts.clock.monotonic() < self._asked_until:
            return
        self._take_back()
        wanted_s = max(limits.WAY_S_MIN, self._longest_s * limits.WAY_ATTEMPTS_WORTH)
        seconds = min(limits.WAY_S_MAX, wanted_s)
        with suppress(GraphError, StoreError):  # then it tries on without
            self._put(seconds, types)
            self._asked_until = self._parts.clock.monotonic() + seconds

    def _put(self, seconds: float, types: frozenset[str]) -> None:
        head = self._parts.log.live_head(self._draft.branch)
        intent = Intent(
            id=self._parts.ids.new(),
            kind=self._draft.kind,
            branch=self._draft.branch,
            base_number=head.number,
            base_commit=head.commit,
            actor=self._draft.actor,
            writer=this_writer(),
            tables={key: pin for key, pin in head.tables.items() if key in types},
            created_at_us=self._parts.clock.now_us(),
            asks_s=seconds,
        )
        self._noted = self._asked.enter_context(self._parts.intents.noted(intent))
        reached(Failpoint.WAY_ASKED)

    def _take_back(self) -> None:
        with suppress(StoreError):  # the next write finds it, and that nobody is behind it any more
            if self._noted is not None:
                self._noted.clear()
        self._noted = None
        self._asked.close()


def make_way(parts: Parts, branch: str, types: frozenset[str], asking: Iterable[Intent]) -> None:
    """Wait for those that ask for it, each no longer than it asks from when it was first met here.

    Args:
        parts (Parts): of the graph.
        branch (str): where a write is about to begin.
        types (frozenset[str]): the type keys it may change; none where that is not known.
        asking (Iterable[Intent]): what living writers of other processes ask.
    """
    for intent in asking:
        apart = intent.branch != branch or (types and types.isdisjoint(intent.tables))
        if not apart:
            _wait_for(parts, intent)


def _wait_for(parts: Parts, intent: Intent) -> None:
    until = parts.clock.monotonic() + min(intent.asks_s, limits.WAY_S_MAX)
    until = parts.intents.waited_for_until(intent.id, until)
    pauses, most_ms = 0, min(_PAUSE_MS_MAX, max(_PAUSE_MS_MIN, int(intent.asks_s * 1_000 / _PAUSES)))
    with suppress(StoreError, GraphError):  # who cannot ask does not wait
        while parts.clock.monotonic() < until and not has_ended(intent.writer, this_writer()):
            pauses += 1
            parts.clock.sleep(backoff_s(pauses, first_ms=_PAUSE_MS_MIN, most_ms=most_ms))
            if not parts.intents.stands(intent.id):
                return
