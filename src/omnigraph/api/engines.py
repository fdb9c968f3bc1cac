"""Here or on Spark: who decides, and how one gets there."""

from enum import StrEnum
from importlib import import_module
from typing import Any

from omnigraph.errors import InvalidRequestError, LimitError, UnavailableError


class Engine(StrEnum):
    """Where something large is done."""

    AUTO = "auto"
    """Here, unless it is too large for that and Spark can be had."""
    LOCAL = "local"
    SPARK = "spark"


def engine_of(said: str) -> Engine:
    """What a caller means.

    Raises:
        InvalidRequestError: nothing.
    """
    try:
        return Engine(said)
    except ValueError:
        raise InvalidRequestError(f"unknown engine '{said}'; one of {', '.join(Engine)}") from None


def spark_module(name: str) -> Any:  # noqa: ANN401  (a module)
    """A module of the pipeline, imported now: Spark's package takes its time, and most calls need none of it."""
    return import_module(f"omnigraph.pipeline.{name}")


def session_for(engine: Engine) -> Any:  # noqa: ANN401  (what belongs to Spark has no type here)
    """The Spark session of this process, made if there is none.

    Returns:
        SparkSession | None: None where `auto` was said and Spark cannot be had on this machine; then it is done here,
            however long it takes.
    """
    try:
        return spark_module("session").spark_session()
    except (UnavailableError, LimitError, ImportError):
        if engine is Engine.AUTO:
            return None
        raise
