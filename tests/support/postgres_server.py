"""A real PostgreSQL server of one's own, in a process beside the tests."""

import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_BINARIES = Path("/usr/lib/postgresql")
_ROLE = "omnigraph"
_BOOT_TIMEOUT_S = 60
_POLL_S = 0.02
_STOP_TIMEOUT_S = 10
# The server refuses to run as root; of these users the first that exists runs it then.
_INSTEAD_OF_ROOT = ("postgres", "nobody")
# A test's data need not survive the machine.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "50",
    "autovacuum": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server.

    Attributes:
        folder: where its socket is.
    """

    folder: Path

    @property
    def address(self) -> str:
        """The connection string of its one database."""
        return f"postgresql:///postgres?host={self.folder}&user={_ROLE}"


def postgres_binaries() -> Path | None:
    """Where Debian's packages put the newest server there is; None if there is none.

    Returns:
        Path | None: the folder of `initdb` and `postgres`.
    """
    found = [folder for folder in _BINARIES.glob("*/bin") if (folder / "initdb").exists()]
    return max(found, key=lambda folder: int(folder.parent.name), default=None)


@contextmanager
def postgres_server(binaries: Path) -> Iterator[PostgresServer]:
    """Run a server with an empty database for as long as the block lasts.

    Args:
        binaries (Path): the folder of `initdb` and `postgres`.

    Yields:
        PostgresServer: answers requests already.
    """
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-postgres-"))
    user = _user()
    shutil.chown(folder, user)
    data = folder / "data"
    try:
        subprocess.run(
            [binaries / "initdb", "--pgdata", data, "--username", _ROLE, "--auth", "trust", "--no-sync", "--no-locale"],
            user=user,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*_follow_parent(), binaries / "postgres", "-D", data, "-k", folder, *settings],
                user=user,
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        try:
            _wait_until_ready(binaries, folder, process)
            yield PostgresServer(folder)
        finally:
            process.send_signal(signal.SIGINT)  # stop at once, clients or not
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    if os.geteuid() != 0:
        return getpass.getuser()
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _INSTEAD_OF_ROOT if name in known)


def _follow_parent() -> list[str]:
    # So that the server ends with the tests, however they end.
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "INT", "--"] if setpriv else []


def _wait_until_ready(binaries: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(int(_BOOT_TIMEOUT_S / _POLL_S)):
        if process.poll() is not None:
            break
        asked = subprocess.run([binaries / "pg_isready", "-q", "-h", folder], check=False)
        if asked.returncode == 0:
            return
        time.sleep(_POLL_S)
    raise OSError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
