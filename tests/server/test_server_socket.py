"""The socket that a server listens at."""

import socket

from omnigraph.server.serving import open_listener


def test_answers_are_not_held_back_until_the_client_has_acknowledged_their_beginning() -> None:
    with open_listener("127.0.0.1:0") as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2]):
            taken, _ = listener.accept()
            with taken:
                assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
