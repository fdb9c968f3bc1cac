"""A real S3 server of one's own, in a process beside the tests.

The server is MiniStack, which must be installed; it refuses the second of two conditional puts, also of two at once.
"""

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.storage.object_stores.s3 import S3Options

_HOST = "127.0.0.1"
_BOOT_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 10
# Only S3, nothing kept on disk, no other listeners.
_SETTINGS = {
    "SERVICES": "s3,secretsmanager",
    "S3_PERSIST": "0",
    "SFTP_ENABLED": "0",
    "IOT_MTLS_ENABLED": "0",
    "MINISTACK_TEST_NO_AUTOSTART": "1",
    "LOG_LEVEL": "ERROR",
}


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server.

    Attributes:
        host: where it listens.
        port: likewise.
    """

    host: str
    port: int

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://{self.host}:{self.port}"

    @property
    def options(self) -> S3Options:
        """How a store reaches it."""
        return options_for(self.endpoint)

    def create_bucket(self, name: str) -> None:
        """Make a bucket; one that exists is left as it is.

        Args:
            name (str): lower-case letters, digits and hyphens.
        """
        status = self._ask("PUT", f"/{name}")
        if status not in {http.HTTPStatus.OK, http.HTTPStatus.CONFLICT}:
            raise OSError(f"the S3 server answered {status} to the making of bucket {name!r}")

    def _ask(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_BOOT_TIMEOUT_S)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        finally:
            connection.close()


def options_for(endpoint: str) -> S3Options:
    """How a store reaches a test server, or a proxy before it.

    Args:
        endpoint (str): its address.

    Returns:
        S3Options: with keys the server does not look at.
    """
    return S3Options(endpoint=endpoint, access_key_id="testing", secret_access_key="testing", allow_http=True)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server on a free port for as long as the block lasts.

    Yields:
        S3Server: answers requests already.
    """
    with socket.create_server((_HOST, 0)) as listener:
        # The server inherits the open socket: no other process can take the port between choosing and using it, and a
        # request sent before the server is up waits instead of being refused.
        port = int(listener.getsockname()[1])
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.s3_process", str(listener.fileno())],
            env={**os.environ, **_SETTINGS, "GATEWAY_PORT": str(port)},
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],  # where `tests` can be imported from
        )
    try:
        server = S3Server(_HOST, port)
        server._ask("GET", "/_ministack/health")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()
