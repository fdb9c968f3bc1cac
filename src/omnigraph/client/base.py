"""What every part of a graph on a server has: the way to it, and its end."""

from typing import Self

from omnigraph.client.wire import Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.options import WriteOptions


class RemoteBase:
    """A graph on a server: where it is, and how it ends. What can be done with it is in the classes made from this."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._closed = False

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._wire.base

    @property
    def read_only(self) -> bool:
        """Whether writes are refused; whether they are allowed is the server's matter."""
        return False

    @property
    def actor(self) -> str | None:
        """Who the server takes the caller for; None before its first answer, and where it knows nobody."""
        return self._wire.actor

    def close(self) -> None:
        """Refuse further calls, and end all connections."""
        self._closed = True
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph at {self.uri}>"

    def _open(self) -> Wire:
        if self._closed:
            raise InvalidRequestError("the graph was closed", code="closed")
        return self._wire

    def _as_told(self, options: WriteOptions) -> Wire:
        """The way to it, for a write that may be sent as it was asked for."""
        wire = self._open()
        refuse_actor(options.actor, wire)
        return wire


def refuse_actor(actor: str | None, wire: Wire) -> None:
    """Stop whoever wants to write as somebody else.

    Raises:
        InvalidRequestError: an actor was named who is not the one of the token.
    """
    if actor is not None and actor != wire.actor:
        raise InvalidRequestError(
            "a served graph takes no actor: the bearer token decides who writes", code="actor_of_token"
        )
