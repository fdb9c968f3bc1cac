"""The engine of large work: this process or Spark."""

from enum import StrEnum
from importlib import import_module
from typing import Any

from omnigraph.errors import InvalidRequestError, LimitError, UnavailableError


class Engine(StrEnum):
    """Where large work runs."""

    AUTO = "auto"
    """This process, unless the work is too large and Spark is available."""
    LOCAL = "local"
    SPARK = "spark"


def engine_of(name: str) -> Engine:
    """Parse the name of an engine.

    Raises:
        InvalidRequestError: there is no such engine.
    """
    try:
        return Engine(name)
    except ValueError:
        raise InvalidRequestError(f"unknown engine '{name}'; one of {', '.join(Engine)}") from None


def spark_module(name: str) -> Any:  # noqa: ANN401  (a module)
    """Import a module of the pipeline when it is needed: pyspark takes long to import."""
    return import_module(f"omnigraph.pipeline.{name}")


def start_session(master: str) -> None:
    """Create the Spark session of this process.

    Raises:
        UnavailableError: there is no suitable Java, or Spark does not start.
        InvalidRequestError: there is a session already, with another master.
    """
    spark_module("session").spark_session(spark_module("settings").SparkSettings(master=master))


def session_for(engine: Engine) -> Any:  # noqa: ANN401  (what belongs to Spark has no type here)
    """Return the Spark session of this process, created if there is none.

    Returns:
        None for `auto` if Spark is not available; the work then runs in this process, however long it takes.
    """
    try:
        return spark_module("session").spark_session()
    except (UnavailableError, LimitError, ImportError):
        if engine is Engine.AUTO:
            return None
        raise
