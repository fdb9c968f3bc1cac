"""Connection timeouts: how long a client may take to send a request head, and to read a response.

uvicorn has a setting for neither (its keep-alive timeout starts after a response), hence a protocol class of our own.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from omnigraph import limits

_HEAD_BYTES_MAX = 4_096


class CoalescingTransport:
    """A transport that sends a response head together with what follows: one packet and one system call, not two.

    A send releases the interpreter lock, which on a busy server is slow to get back.
    """

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self._buffered = b""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the inner transport has)
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        """Send data after what is buffered; buffer a first small piece until the next turn of the event loop."""
        if self._buffered:
            buffered, self._buffered = self._buffered, b""
            self._inner.write(buffered + data)
        elif not data:
            return
        elif len(data) <= _HEAD_BYTES_MAX:
            self._buffered = data
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._inner.write(data)

    def close(self) -> None:
        """Close the connection after everything was sent."""
        self._flush()
        self._inner.close()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that are not sent yet."""
        return self._inner.get_write_buffer_size() + len(self._buffered)

    def _flush(self) -> None:
        if self._buffered:
            buffered, self._buffered = self._buffered, b""
            self._inner.write(buffered)


class TimeoutProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # uvicorn types the choice as a value
    """An HTTP connection that is closed if a request head does not arrive, or a response is not read, in time.

    Bodies have their own timeout, which starts after the head. Unsent response bytes must shrink within each interval,
    whether the application still sends or has finished: else they would be kept forever for a reader who left.
    """

    def __init__(self, *args: Any, head_s_max: float, stall_s_max: float, **named: Any) -> None:  # noqa: ANN401  (uvicorn's own)
        super().__init__(*args, **named)
        self._head_s_max = head_s_max
        self._stall_s_max = stall_s_max
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start waiting for a request head."""
        super().connection_made(transport)
        self.transport = CoalescingTransport(transport)
        self._update_head_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the head timeout once the head is complete, and refuse a head that does not end."""
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > limits.SERVER_HEAD_BYTES_MAX:
                self.send_400_response("The request head is too large.")
                self._in_head = False
        self._update_head_timer()
        if not self._is_between_requests() and not self.flow.write_paused:
            self._stop_stall_timer()  # what is sent from now on is another response

    def on_message_begin(self) -> None:
        """Count the bytes of a request head; called by httptools (h11 has a limit of its own)."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both timeouts."""
        self._stop_head_timer()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Watch the reader, as the write buffer is full."""
        super().pause_writing()
        self._start_stall_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop watching the reader, unless these are the last bytes of a response."""
        self._stop_stall_timer()
        super().resume_writing()
        self._watch_last_bytes()

    def on_response_complete(self) -> None:
        """Watch the reader until the last bytes of the response are sent."""
        super().on_response_complete()
        if self._stall_timer is None:
            self._watch_last_bytes()

    # -- the request head ---------------------------------------------------------------------------------------------

    def _update_head_timer(self) -> None:
        if not self._is_between_requests():
            self._stop_head_timer()
        elif self._head_timer is None:
            self._head_timer = asyncio.get_running_loop().call_later(self._head_s_max, self._head_timed_out)

    def _head_timed_out(self) -> None:
        self._head_timer = None
        if not self._is_between_requests():
            return
        if self.transport.get_write_buffer_size():
            # A close would wait until the rest is read.
            self.transport.abort()
        else:
            self.transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # -- the reader of a response -------------------------------------------------------------------------------------

    def _watch_last_bytes(self) -> None:
        """Apply the stall timeout to a finished response, also while the connection is closing."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and self._is_between_requests():
            self._start_stall_timer(unsent)

    def _start_stall_timer(self, unsent: int) -> None:
        self._stop_stall_timer()
        self._stall_timer = asyncio.get_running_loop().call_later(self._stall_s_max, self._check_progress, unsent)

    def _check_progress(self, unsent_before: int) -> None:
        self._stall_timer = None
        unsent = self.transport.get_write_buffer_size()
        if unsent > max(0, unsent_before - limits.SERVER_STREAM_CHUNK_BYTES):
            self.transport.abort()
        elif unsent:
            self._start_stall_timer(unsent)

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
