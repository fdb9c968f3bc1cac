"""What all requests of a process share."""

from dataclasses import dataclass

from omnigraph.clock import Clock
from omnigraph.ids import IdSource
from omnigraph.server.admission import Admission
from omnigraph.server.graphs import Graphs
from omnigraph.server.room import Room
from omnigraph.server.settings import ServerSettings
from omnigraph.server.streams import StreamSlots
from omnigraph.server.threads import Threads
from omnigraph.server.turns import Turns


@dataclass(frozen=True, slots=True)
class ServerState:
    """What all requests of a process share.

    Attributes:
        settings: what the server was started with.
        graphs: what it serves.
        admission: what each actor has under way.
        turns: whose turn it is at the threads.
        threads: in which calls run.
        streams: who may stream.
        bodies: room for the bodies of requests.
        queries: room for what queries hold while they run.
        results: room for large results on their way out.
        clock: measures how long things take.
        ids: names requests.
    """

    settings: ServerSettings
    graphs: Graphs
    admission: Admission
    turns: Turns
    threads: Threads
    streams: StreamSlots
    bodies: Room
    queries: Room
    results: Room
    clock: Clock
    ids: IdSource
