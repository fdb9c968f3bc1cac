"""Upkeep beside writers that never pause."""

import threading
from itertools import repeat

from tests.support.interleaving import RacingStore

import omnigraph
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction import queues

SCHEMA = "node Mark { serial: I32 }"
MARK = "query mark($n: I32) { insert Mark { serial: $n } }"


def test_a_compaction_waits_in_line_with_writers_that_are_always_faster() -> None:
    options = omnigraph.OpenOptions(auto_compact=False)
    store = MemoryStore()
    others: list[threading.Thread] = []
    with omnigraph.init(store, SCHEMA, options=options) as busy:
        for number in range(20):
            busy.mutate(MARK, {"n": number})

        def faster() -> None:
            """Write before the compaction does; or be seen to wait for it."""
            other = threading.Thread(target=busy.mutate, args=(MARK, {"n": 20 + len(others)}))
            others.append(other)
            other.start()
            while other.is_alive() and not any(queue.users > 1 for queue in queues._queues.values()):
                other.join(0.001)

        racing = RacingStore(store, repeat(faster))
        with omnigraph.open(racing, options=options, clock=ManualClock()) as tidy:
            tidy.optimize(engine="local")

        for other in others:
            other.join()
        kinds = [each.kind for each in busy.commits.list()]
        assert kinds.count("compact") == 1
        assert busy.count("Mark") == 20 + len(others)
        assert len(others) < 10, "it lost a few races, and then waited in line"
