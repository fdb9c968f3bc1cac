"""A server in a process of its own, as an operator starts it."""

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
    """A server that runs.

    Attributes:
        url: where it answers.
        process: the process itself.
    """

    url: str
    process: "subprocess.Popen[str]"
    _lines: list[str] = field(default_factory=list)

    @property
    def logs(self) -> str:
        """What it wrote to stderr so far."""
        return "".join(self._lines)

    def client(self, token: str | None = None, *, timeout_s: float = 60.0) -> httpx.Client:
        """Something to ask it with.

        Args:
            token: a bearer token.
            timeout_s: how long an answer may take.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout_s)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Tell it to stop, and wait until it has.

        Returns:
            The code it ended with.
        """
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(_STOP_S)


@contextmanager
def served(*words: str, environment: Mapping[str, str] | None = None) -> Iterator[RunningServer]:
    """A server, started with these words on a free port, and stopped at the end.

    Args:
        words: what an operator types after `omnigraph-server`, but for `--bind`.
        environment: variables beside those of this process; tokens of this process are not among them.

    Raises:
        RuntimeError: it did not start; the message is what it wrote.
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
        said = process.stdout.readline()
        if not said.startswith(_LISTEN_LINE):
            process.wait(_STOP_S)
            reader.join(_STOP_S)
            raise RuntimeError(f"the server did not start: {server.logs}")
        server.url = f"http://{said.removeprefix(_LISTEN_LINE).strip()}"
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
        lines.append(line)  # noqa: PERF402  (one by one: they are looked at while more come)
