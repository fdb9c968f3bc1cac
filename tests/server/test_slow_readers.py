"""Readers who stop reading: what is kept for them is let go, whether or not anybody waits for it to be sent."""

import asyncio
import socket
from functools import partial

import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from omnigraph.server.timeouts import TimeoutProtocol

SMALL = 4_096


def answering(size: int, *, pieces: int = 1) -> ASGIApp:
    """An application that answers with so many bytes."""

    async def app(_: Scope, __: Receive, send: Send) -> None:
        length = str(size * pieces).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        for number in range(pieces):
            more = number + 1 < pieces
            message: Message = {"type": "http.response.body", "body": b"x" * size, "more_body": more}
            await send(message)

    return app


def listening() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)  # those it accepts have it too
    made.setblocking(False)
    return made


def calling(listener: socket.socket) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    made.connect(listener.getsockname())
    return made


async def connections_after(app: ASGIApp, request: bytes, *, reads: bool) -> tuple[int, int]:
    """How many bytes a client got of an answer, and how many connections are left when all have ended that do."""
    begun = asyncio.Event()

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await app(scope, receive, send)

    config = uvicorn.Config(noted, log_config=None, lifespan="off", timeout_keep_alive=0)
    config.load()
    state = ServerState()
    stall_s = 30.0 if reads else 0.05
    made = partial(TimeoutProtocol, config=config, server_state=state, app_state={}, head_s_max=30.0)
    loop = asyncio.get_running_loop()
    with listening() as listener, calling(listener) as client:
        server = await loop.create_server(partial(made, stall_s_max=stall_s), sock=listener)
        client.setblocking(False)
        await loop.sock_sendall(client, request)
        got = 0
        while reads and (piece := await loop.sock_recv(client, SMALL)):
            got += len(piece)
        await begun.wait()
        while state.connections:
            await asyncio.sleep(0.001)
        server.close()
    return got, len(state.connections)


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("request_", [REQUEST, LAST], ids=["stays", "closes"])
@pytest.mark.parametrize("size", [20_000, 10 * 1024**2], ids=["little", "much"])
def test_an_answer_that_nobody_reads_is_not_kept_for_ever(size: int, request_: bytes) -> None:
    assert asyncio.run(connections_after(answering(size), request_, reads=False)) == (0, 0)


def test_a_sender_that_waits_for_a_reader_is_let_go() -> None:
    assert asyncio.run(connections_after(answering(100_000, pieces=50), REQUEST, reads=False)) == (0, 0)


def test_an_answer_that_is_read_comes_whole() -> None:
    got, left = asyncio.run(connections_after(answering(100_000, pieces=20), LAST, reads=True))

    assert got > 2_000_000
    assert left == 0
