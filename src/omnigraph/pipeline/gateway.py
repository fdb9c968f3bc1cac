"""The Java process behind a Spark session, started directly: no shell, no launcher, nothing on the PATH.

It dies with us: it reads from a pipe that only we hold open, and ends when that is closed, however we end.
"""

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import UnavailableError
from omnigraph.pipeline.class_archive import ClassArchive
from omnigraph.pipeline.interruptible import raise_if_cancelled
from omnigraph.pipeline.java import Java, home_for_workers

# fmt: off
_OPENED_PACKAGES = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)
# fmt: on
_UNSAFE_MEMORY_WARNS_FROM_MAJOR = 23
_LOG_TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Launch:
    """What a gateway is started with.

    Attributes:
        spark_home: where Spark is.
        memory_bytes: the most that Java's heap may grow to.
        conf: Spark's settings.
        archive: the cache of classes, if there can be one.
        python: the interpreter of Python workers.
        local_address: the address that Spark listens at; any by default.
    """

    java: Java
    spark_home: Path
    memory_bytes: int
    conf: tuple[tuple[str, str], ...]
    archive: ClassArchive | None
    python: str
    local_address: str | None = None

    def command(self) -> list[str]:
        """The command line."""
        options = [
            "-XX:+IgnoreUnrecognizedVMOptions",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
            "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
            "-Djdk.reflect.useDirectMethodHandle=false",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "--enable-native-access=ALL-UNNAMED",
        ]
        if self.java.major >= _UNSAFE_MEMORY_WARNS_FROM_MAJOR:
            options.append("--sun-misc-unsafe-memory-access=allow")
        if self.archive is not None:
            options.extend(self.archive.options())
        configured = os.environ.get("SPARK_CONF_DIR", str(self.spark_home / "conf"))
        return [
            str(self.java.executable),
            "-cp",
            f"{configured}{os.pathsep}{self.spark_home / 'jars' / '*'}",
            f"-Xmx{self.memory_bytes // 1024**2}m",
            *options,
            "org.apache.spark.deploy.SparkSubmit",
            *(word for key, value in self.conf for word in ("--conf", f"{key}={value}")),
            "pyspark-shell",
        ]


class Gateway:
    """A running Java process that Python talks to."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", folder: Path, port: int, secret: str, archive: ClassArchive | None
    ) -> None:
        self._process = process
        self._folder = folder
        self._archive = archive
        self.port = port
        self.secret = secret

    @property
    def process_id(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process and wait until it is gone, with everything it left in its folder."""
        try:
            _end(self._process)
            if self._archive is not None and not self._archive.is_there:
                self._archive.keep()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def start_gateway(launch: Launch, clock: Clock | None = None) -> Gateway:
    """Start Java and wait until it can be talked to.

    Args:
        launch: what to start.
        clock: for waiting.

    Returns:
        Gateway: running.

    Raises:
        UnavailableError: it does not start (`spark_not_started`); the message ends with what it said.
    """
    clock = clock or SystemClock()
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    log_path, connection_path = folder / "said.log", folder / "connection"
    try:
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                launch.command(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environment(launch, folder, connection_path),
                # Ctrl-C at a terminal goes to the whole foreground group; Java is to hear of it from us, in order.
                start_new_session=True,
            )
        try:
            port, secret = _connection(process, connection_path, log_path, clock)
        except BaseException:
            _end(process, patience_s=0)
            raise
    except OSError as fault:
        shutil.rmtree(folder, ignore_errors=True)
        raise UnavailableError(
            f"Java at {launch.java.home} does not start: {fault}", code="spark_not_started"
        ) from fault
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Gateway(process, folder, port, secret, launch.archive)


def _environment(launch: Launch, folder: Path, connection_path: Path) -> Mapping[str, str]:
    environment = dict(os.environ) | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_path),
        "SPARK_HOME": str(launch.spark_home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONNECT_MODE": "0",
        "PYSPARK_PYTHON": launch.python,
        "JAVA_HOME": str(home_for_workers(launch.java, folder / "java")),
    }
    if launch.local_address is not None:
        environment.setdefault("SPARK_LOCAL_IP", launch.local_address)
    return environment


def _connection(
    process: "subprocess.Popen[bytes]", connection_path: Path, log_path: Path, clock: Clock
) -> tuple[int, str]:
    """Port and secret, once the process has written them; it renames the file into its place when it is whole."""
    deadline = clock.monotonic() + limits.SPARK_START_S_MAX
    while not connection_path.is_file():
        raise_if_cancelled()
        if process.poll() is not None:
            raise UnavailableError(
                f"Spark's Java process ended as it started (exit {process.returncode}){_tail(log_path)}",
                code="spark_not_started",
            )
        if clock.monotonic() > deadline:
            raise UnavailableError(
                f"Spark's Java process did not start within {limits.SPARK_START_S_MAX:.0f} s{_tail(log_path)}",
                code="spark_not_started",
            )
        clock.sleep(0.02)
    body = connection_path.read_bytes()
    port, length = struct.unpack_from(">ii", body)
    return port, body[8 : 8 + length].decode()


def _tail(log_path: Path) -> str:
    lines: Sequence[str] = log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
    return ":\n" + "\n".join(lines) if lines else "; it said nothing"


def _end(process: "subprocess.Popen[bytes]", *, patience_s: float = limits.SPARK_END_S_MAX) -> None:
    """Close its pipe, wait, and insist if need be."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=patience_s)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
