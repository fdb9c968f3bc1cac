"""How long a connection may take to say what it wants."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientProtocol(H11Protocol):
    """A connection that is closed when the head of a request does not come in good time.

    Bodies have a time of their own, which begins when their head has come.
    """

    def __init__(self, *args: Any, head_s_max: float, **named: Any) -> None:  # noqa: ANN401  (uvicorn's own)
        super().__init__(*args, **named)
        self._head_s_max = head_s_max
        self._waits: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        """Somebody is there."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._forget()
        super().connection_lost(exc)

    def _look(self) -> None:
        if not self._is_between_requests():
            self._forget()
        elif self._waits is None:
            self._waits = asyncio.get_running_loop().call_later(self._head_s_max, self._give_up)

    def _give_up(self) -> None:
        self._waits = None
        if self._is_between_requests():
            self.transport.close()

    def _forget(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete
