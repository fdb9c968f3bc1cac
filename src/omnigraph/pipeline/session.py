"""The Spark session of the process: find the caller's, connect to a remote one, or start an embedded one.

A session of the caller is never stopped here. The embedded one ends with the process, on Ctrl-C too, and takes its Java
process along. This is the only module that uses private attributes of PySpark, or `SparkContext`: everything else runs
on the public DataFrame API, so that it works over Spark Connect too.
"""

import atexit
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.pipeline.class_archive import class_archive
from omnigraph.pipeline.gateway import Gateway, Launch, start_gateway
from omnigraph.pipeline.java import find_java
from omnigraph.pipeline.machine import this_machine
from omnigraph.pipeline.settings import SparkSettings, heap_bytes, is_local, spark_conf

_LOOPBACK = "127.0.0.1"
_REMOTE = "sc://"
_CONNECT = "pyspark.sql.connect.session"


@dataclass(slots=True)
class _Ours:
    """The session we made, and what must be undone with it."""

    session: SparkSession
    gateway: Gateway
    folder: "tempfile.TemporaryDirectory[str]"
    interrupt: Any


_lock = threading.RLock()
_ours: _Ours | None = None


def spark_session(settings: SparkSettings | None = None) -> SparkSession:
    """The Spark session of this process, made now if there is none.

    Args:
        settings: what it should be like; sized to this machine by default.

    Returns:
        SparkSession: do not stop it; `stop_spark_session` does, if it is ours.

    Raises:
        InvalidRequestError: there is a session already, and it is not as asked for (`spark_session_differs`).
        LimitError: the memory asked for is too little for Spark or too much for this machine (`spark_memory`).
        UnavailableError: there is no fitting Java (`no_java`), or Spark does not start (`spark_not_started`).
    """
    settings = SparkSettings() if settings is None else settings
    if not isinstance(settings, SparkSettings):
        raise InvalidRequestError(
            f"a session is made with SparkSettings, like SparkSettings(master='local[2]'), not with {settings!r}"
        )
    with _lock:
        there = active_session()
        if there is not None:
            _check_settings(there, settings)
            return there
        stop_spark_session()  # ours may have died
        remote = settings.chosen.get("spark.master", "")
        return _connect(remote, settings) if remote.startswith(_REMOTE) else _make(settings)


def active_session() -> SparkSession | None:
    """Return the running session, of the caller or ours.

    Returns:
        SparkSession | None: None where there is none that lives.
    """
    with _lock:
        connect = sys.modules.get(_CONNECT)
        remote = None if connect is None else connect.SparkSession.getActiveSession()
        if remote is not None:
            return None if remote.is_stopped else cast(SparkSession, remote)
        context = SparkContext._active_spark_context
        if context is None or context._jsc is None:
            return None
        if _ours is not None and _ours.session.sparkContext is context:
            return _ours.session if _ours.gateway.is_running else None
        return SparkSession.getActiveSession() or SparkSession(context)


def is_session(value: object) -> bool:
    """Whether a value is a Spark session, classic or over Spark Connect."""
    connect = sys.modules.get(_CONNECT)
    return isinstance(value, SparkSession) or (connect is not None and isinstance(value, connect.SparkSession))


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return not isinstance(session, SparkSession)


def is_stopped(session: SparkSession) -> bool:
    """Whether a session was stopped."""
    return bool(getattr(session, "is_stopped", False)) if is_remote(session) else session.sparkContext._jsc is None


def describe_session(session: SparkSession) -> str:
    """Return what runs where: the versions of Spark and Java, and the master."""
    if is_remote(session):
        return f"Spark {session.version} over Spark Connect"
    version = session.sparkContext._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]  # there is one
    return f"Spark {session.version} on Java {version}, {session.sparkContext.master}"


@contextmanager
def tagged(session: SparkSession, tag: str, description: str) -> Iterator[None]:
    """Tag the jobs of a block, so that `interruptTag` cancels them; show a description in the UI of a classic session.

    Args:
        tag: without commas.
        description: a few words.
    """
    session.addTag(tag)
    classic = not is_remote(session)
    if classic:
        session.sparkContext.setJobGroup(tag, description, interruptOnCancel=True)
    try:
        yield
    finally:
        session.removeTag(tag)
        if classic and session.sparkContext._jsc is not None:
            session.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None removes it


class TaskProgress:
    """The share of completed tasks of the jobs with a tag."""

    def __init__(self, session: SparkSession, tag: str) -> None:
        self._session: Any = session
        self._tag = tag
        self._share = 0.0
        self._is_remote = is_remote(session)
        self._handler = cast(Any, self._update)
        if self._is_remote:
            self._session.registerProgressHandler(self._handler)

    def share(self) -> float:
        """Return the share, from 0 to 1.

        Raises:
            Py4JError, OSError, AttributeError: the session was stopped.
        """
        if self._is_remote:
            return self._share
        status = self._session.sparkContext.statusTracker()
        jobs = [status.getJobInfo(number) for number in status.getJobIdsForGroup(self._tag)]
        stages = [status.getStageInfo(number) for job in jobs if job is not None for number in job.stageIds]
        known = [stage for stage in stages if stage is not None]
        tasks = sum(stage.numTasks for stage in known)
        return sum(stage.numCompletedTasks for stage in known) / tasks if tasks else 0.0

    def close(self) -> None:
        """Stop listening."""
        if self._is_remote:
            self._session.removeProgressHandler(self._handler)

    def _update(self, stages: Any, **_: Any) -> None:  # noqa: ANN401  (Spark's own)
        tasks = sum(stage.num_tasks for stage in stages or ())
        self._share = sum(stage.num_completed_tasks for stage in stages) / tasks if tasks else 0.0


def stop_spark_session() -> None:
    """End our session and its Java process, if there is one; a session of the caller goes on."""
    global _ours
    with _lock:
        ours, _ours = _ours, None
        if ours is None:
            return
        try:
            _disconnect(ours)
        finally:
            ours.gateway.close()
            ours.folder.cleanup()


atexit.register(stop_spark_session)


def _connect(remote: str, settings: SparkSettings) -> SparkSession:
    """Open a session of Spark Connect; it ends with the process, and the server goes on."""
    builder = SparkSession.builder.remote(remote).appName(settings.app_name)
    for key, value in settings.conf:
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, ImportError, OSError) as fault:
        raise UnavailableError(
            f"Spark Connect at {remote} does not answer: {_first_line(fault)}", code="spark_not_started"
        ) from fault


def _make(settings: SparkSettings) -> SparkSession:
    global _ours  # noqa: PLW0603  (Spark has one session per process)
    machine = this_machine()
    memory = heap_bytes(settings, machine)
    java = find_java()
    spark_home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    folder = tempfile.TemporaryDirectory(prefix="omnigraph-spark-", ignore_cleanup_errors=True)
    conf = spark_conf(settings, machine, folder=Path(folder.name), python=sys.executable)
    launch = Launch(
        java=java,
        spark_home=spark_home,
        memory_bytes=memory,
        conf=tuple(conf.items()),
        archive=class_archive(java, spark_home, pyspark.__version__),
        python=conf["spark.pyspark.python"],
        local_address=_LOOPBACK if is_local(conf["spark.master"]) else None,
    )
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        gateway = _started(launch)
    except BaseException:
        folder.cleanup()
        raise
    try:
        session = _connected(gateway, conf)
    except BaseException as fault:
        _forget_the_gateway()
        gateway.close()
        folder.cleanup()
        if isinstance(fault, Py4JError):
            raise UnavailableError(
                f"Spark does not start with master {conf['spark.master']}: {_first_line(fault)}",
                code="spark_not_started",
            ) from fault
        raise
    _ours = _Ours(session, gateway, folder, interrupt)
    return session


def _started(launch: Launch) -> Gateway:
    try:
        return start_gateway(launch)
    except UnavailableError:
        if launch.archive is None:
            raise
        return start_gateway(replace(launch, archive=None))  # no job fails for want of a cache


def _connected(gateway: Gateway, conf: Mapping[str, str]) -> SparkSession:
    # PySpark reads these once, as it connects; no child of ours shall find them.
    with _environment(
        PYSPARK_GATEWAY_PORT=str(gateway.port),
        PYSPARK_GATEWAY_SECRET=gateway.secret,
        PYSPARK_PYTHON=conf["spark.pyspark.python"],
    ):
        connected = launch_gateway()  # type: ignore[no-untyped-call]  # Spark has no types here
        SparkContext._gateway, SparkContext._jvm = connected, connected.jvm
        context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
        return SparkSession(context)


def _disconnect(ours: _Ours) -> None:
    try:
        if ours.gateway.is_running:
            ours.session.stop()
    except (Py4JError, OSError):
        pass  # it died meanwhile: there is nothing left to stop
    finally:
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        _forget_the_gateway()
        if threading.current_thread() is threading.main_thread() and ours.interrupt is not None:
            signal.signal(signal.SIGINT, ours.interrupt)


def _forget_the_gateway() -> None:
    connected = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    if connected is not None:
        connected.shutdown()


def _check_settings(session: SparkSession, settings: SparkSettings) -> None:
    has: Any = session.conf if is_remote(session) else session.sparkContext.getConf()
    for key, wanted in settings.chosen.items():
        if wanted.startswith(_REMOTE) and is_remote(session):
            continue
        is_now = has.get(key, None)
        if is_now != wanted:
            raise InvalidRequestError(
                f"a Spark session is running already with {key}={is_now}, and {wanted} was asked for: there can be one "
                f"session in a process; stop it first, or leave the setting out",
                code="spark_session_differs",
            )


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _first_line(fault: BaseException) -> str:
    java = getattr(fault, "java_exception", None)
    text = str(java.getMessage()) if java is not None else str(fault)
    return text.splitlines()[0] if text else type(fault).__name__
