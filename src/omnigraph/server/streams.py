"""Streams: lines or bytes sent while they are read, from one commit and without holding anything others wait for."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import chain

from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool
from starlette.types import Receive, Scope, Send

from omnigraph import limits
from omnigraph.server.errors import Refusal

NDJSON_UTF8 = "application/x-ndjson; charset=utf-8"
_TRANSPORT_BYTES = limits.SERVER_STREAMS_MAX * 4 * limits.SERVER_STREAM_CHUNK_BYTES


class StreamSlots:
    """Who may stream: one export of each graph at a time, and a few in a process."""

    def __init__(self) -> None:
        self._graphs: set[str] = set()
        self._lock = threading.Lock()
        self._process = threading.BoundedSemaphore(limits.SERVER_STREAMS_MAX)

    def take(self, graph_id: str) -> Callable[[], None]:
        """Take a place.

        Args:
            graph_id: of which graph.

        Returns:
            What gives the place back; calling it twice does nothing more.

        Raises:
            Refusal: there is none.
        """
        with self._lock:
            if graph_id in self._graphs:
                raise _refused("stream_export_slots", limit=1, actual=2)
            self._graphs.add(graph_id)
        if not self._process.acquire(timeout=limits.SERVER_STREAM_WAIT_S):
            with self._lock:
                self._graphs.discard(graph_id)
            more = _TRANSPORT_BYTES + _TRANSPORT_BYTES // limits.SERVER_STREAMS_MAX
            raise _refused("stream_export_transport_bytes", limit=_TRANSPORT_BYTES, actual=more)
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            with self._lock:
                if given_back:
                    return
                given_back = True
                self._graphs.discard(graph_id)
            self._process.release()

        return give_back

    @property
    def taken(self) -> int:
        """How many are taken."""
        return len(self._graphs)


class PieceStream(StreamingResponse):
    """Bytes sent in small pieces, each in good time; whoever stops reading is left."""

    def __init__(
        self,
        pieces: Iterator[bytes | memoryview],
        *,
        media_type: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(_small(pieces), status_code=status, headers=headers, media_type=media_type)
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._done()

    async def stream_response(self, send: Send) -> None:
        """Send the pieces, none of which may take too long."""

        async def in_good_time(message: object) -> None:
            async with asyncio.timeout(limits.SERVER_STREAM_STALL_S):
                await send(message)  # type: ignore[arg-type]  # as it came

        await super().stream_response(in_good_time)


def begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, the first of them found already: what is wrong then can still be told."""
    first = next(pieces, None)
    return pieces if first is None else chain((first,), pieces)


async def _small(pieces: Iterator[bytes | memoryview]) -> AsyncIterator[bytes | memoryview]:
    size = limits.SERVER_STREAM_CHUNK_BYTES
    async for piece in iterate_in_threadpool(pieces):
        view = memoryview(piece)
        for start in range(0, len(view), size):
            yield view[start : start + size]


def _refused(resource: str, *, limit: int, actual: int) -> Refusal:
    return Refusal(
        413,
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        details={"resource_limit": {"resource": resource, "limit": limit, "actual": actual}},
    )
