"""How long a connection may take to say what it wants, and to take what it is sent."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from omnigraph import limits

_HEAD_BYTES_MAX = 4_096


class JoiningTransport:
    """A transport that sends the head of an answer together with what follows it: one packet and one call, not two.

    Sending lets go of the interpreter, which on a busy server comes back late.
    """

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self._kept = b""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the other has)
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        """Send something, what was kept before it; the first small piece is kept until the loop comes round."""
        if self._kept:
            kept, self._kept = self._kept, b""
            self._inner.write(kept + data)
        elif not data:
            return
        elif len(data) <= _HEAD_BYTES_MAX:
            self._kept = data
            asyncio.get_running_loop().call_soon(self._send)
        else:
            self._inner.write(data)

    def close(self) -> None:
        """End the connection when everything was sent."""
        self._send()
        self._inner.close()

    def get_write_buffer_size(self) -> int:
        """How much is not sent yet."""
        return self._inner.get_write_buffer_size() + len(self._kept)

    def _send(self) -> None:
        if self._kept:
            kept, self._kept = self._kept, b""
            self._inner.write(kept)


class PatientProtocol(H11Protocol):
    """A connection that is ended when the head of a request does not come in good time, or nobody reads the answer.

    Bodies have a time of their own, which begins when their head has come. An answer that waits to be sent must get
    shorter by some bytes in so much time, whether its sender waits for that or is long done: what is kept for a reader
    who never comes would be kept for ever.
    """

    def __init__(self, *args: Any, head_s_max: float, stall_s_max: float, **named: Any) -> None:  # noqa: ANN401  (uvicorn's own)
        super().__init__(*args, **named)
        self._head_s_max = head_s_max
        self._stall_s_max = stall_s_max
        self._waits: asyncio.TimerHandle | None = None
        self._stalls: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        """Somebody is there."""
        super().connection_made(transport)
        self.transport = JoiningTransport(transport)  # type: ignore[assignment]  # it has all that the other has
        self._look()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        super().data_received(data)
        self._look()
        if not self._is_between_requests() and not self.flow.write_paused:
            self._flows()  # what is sent from now on is another answer

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._forget()
        self._flows()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More waits to be sent than should."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Most of it was sent."""
        self._flows()
        super().resume_writing()
        self._watch_the_end()

    def on_response_complete(self) -> None:
        """All of an answer is handed over, and may not be sent yet."""
        super().on_response_complete()
        if self._stalls is None:
            self._watch_the_end()

    # -- waiting to be told -------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if not self._is_between_requests():
            self._forget()
        elif self._waits is None:
            self._waits = asyncio.get_running_loop().call_later(self._head_s_max, self._give_up)

    def _give_up(self) -> None:
        self._waits = None
        if not self._is_between_requests():
            return
        if self.transport.get_write_buffer_size():
            # A close would wait for somebody to read the rest.
            self.transport.abort()
        else:
            self.transport.close()

    def _forget(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # -- waiting to be read -------------------------------------------------------------------------------------------

    def _watch_the_end(self) -> None:
        """See to it that the last of an answer goes out too; a connection that is being closed waits for that."""
        left = self.transport.get_write_buffer_size()
        if left and self._is_between_requests():
            self._watch(left)

    def _watch(self, left: int) -> None:
        self._flows()
        self._stalls = asyncio.get_running_loop().call_later(self._stall_s_max, self._look_at_what_is_left, left)

    def _look_at_what_is_left(self, before: int) -> None:
        self._stalls = None
        left = self.transport.get_write_buffer_size()
        if left > max(0, before - limits.SERVER_STREAM_CHUNK_BYTES):
            self.transport.abort()
        elif left:
            self._watch(left)

    def _flows(self) -> None:
        if self._stalls is not None:
            self._stalls.cancel()
            self._stalls = None
