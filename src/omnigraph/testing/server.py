"""`omnigraph-server` in a process of its own, as an operator starts it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

import httpx

_TOKENS = "OMNIGRAPH_SERVER_"
_LISTEN_LINE = "OMNIGRAPH_LISTEN_ADDR="
_STOP_S = 60.0


@dataclass(slots=True)
class RunningServer:
    """A running server; `url` is its address."""

    url: str
    process: "subprocess.Popen[str]"
    _lines: list[str] = field(default_factory=list)

    @property
    def logs(self) -> str:
        """Everything written to stderr so far."""
        return "".join(self._lines)

    def client(self, token: str | None = None, *, timeout_s: float = 60.0) -> httpx.Client:
        """Return an HTTP client for the server, with a bearer token if one is given."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout_s)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, wait until the process has ended, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(_STOP_S)


@contextmanager
def served(*words: str, environment: Mapping[str, str] | None = None) -> Iterator[RunningServer]:
    """Start a server on a free port, and stop it at the end.

    Args:
        words: the arguments after `omnigraph-server`, but for `--bind`.
        environment: added to the variables of this process, of which tokens are left out.

    Raises:
        RuntimeError: the server did not start; the message is what it wrote to stderr.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_TOKENS)}
    command = [sys.executable, "-m", "omnigraph.server.main", "--bind", "127.0.0.1:0", *words]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=inherited | dict(environment or {}),
    )
    assert process.stdout is not None and process.stderr is not None
    server = RunningServer("", process)
    reader = threading.Thread(target=_keep, args=(process.stderr, server._lines), daemon=True)
    reader.start()
    try:
        line = process.stdout.readline()
        if not line.startswith(_LISTEN_LINE):
            process.wait(_STOP_S)
            reader.join(_STOP_S)
            raise RuntimeError(f"the server did not start: {server.logs}")
        server.url = f"http://{line.removeprefix(_LISTEN_LINE).strip()}"
        yield server
    finally:
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            reader.join(_STOP_S)
            process.stdout.close()
            process.stderr.close()


def _keep(stream: IO[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line)  # noqa: PERF402  (one by one: they are read while more arrive)
