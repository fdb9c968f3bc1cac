"""State that all requests of a process share."""

from dataclasses import dataclass

from omnigraph.clock import Clock
from omnigraph.ids import IdSource
from omnigraph.server.fair_scheduler import Admission, FairScheduler, StreamSlots, WorkerThreads
from omnigraph.server.graphs import Graphs
from omnigraph.server.memory_budget import MemoryBudget
from omnigraph.server.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class AppState:
    """State that all requests of a process share.

    Attributes:
        settings: from flags and environment.
        graphs: open for the life of the process.
        admission: limits writes and exports per actor.
        scheduler: decides which call gets a thread next.
        threads: run the calls.
        streams: limits exports.
        body_memory: budget for request bodies.
        query_memory: budget for running queries.
        result_memory: budget for large results while they are sent.
        clock: measures durations.
        ids: the first request id comes from it.
    """

    settings: ServerSettings
    graphs: Graphs
    admission: Admission
    scheduler: FairScheduler
    threads: WorkerThreads
    streams: StreamSlots
    body_memory: MemoryBudget
    query_memory: MemoryBudget
    result_memory: MemoryBudget
    clock: Clock
    ids: IdSource
