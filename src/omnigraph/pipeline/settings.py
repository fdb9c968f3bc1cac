"""What a Spark session is made with: what the caller says, and what the machine suggests for the rest."""

import re
from dataclasses import dataclass
from pathlib import Path

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.pipeline.machine import Machine

_LOOPBACK = "127.0.0.1"
_UNITS = {"": 1024**2, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a caller may say about the session; everything else follows from the machine.

    Attributes:
        master: where Spark runs: `local[4]`, `spark://host:7077`, …; all of this machine by default.
        conf: settings of Spark's own, as pairs; they win over ours.
        driver_memory: the heap of the Java process here, like `2g`; a share of the machine's memory by default.
        app_name: what Spark calls it.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    driver_memory: str | None = None
    app_name: str = "omnigraph"

    @property
    def chosen(self) -> dict[str, str]:
        """The settings that the caller chose, as settings of Spark's."""
        chosen = dict(self.conf)
        if self.master is not None:
            chosen["spark.master"] = self.master
        if self.driver_memory is not None:
            chosen["spark.driver.memory"] = self.driver_memory
        return chosen


def bytes_of_size(text: str) -> int:
    """The bytes in a text like `2g` or `512m`; a bare number counts mebibytes, as Spark has it.

    Args:
        text: the size.

    Returns:
        int: bytes.

    Raises:
        InvalidRequestError: it is not a size.
    """
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidRequestError(f"'{text}' is not an amount of memory: write it like 2g or 512m")
    return int(found[1]) * _UNITS[found[2]]


def heap_bytes(settings: SparkSettings, machine: Machine) -> int:
    """How large the Java heap here may grow.

    Args:
        settings: what was asked for.
        machine: what there is.

    Returns:
        int: what was asked for, else a share of the machine's memory.

    Raises:
        LimitError: less than Spark needs, or more than the machine has (`spark_memory`).
    """
    requested = settings.chosen.get("spark.driver.memory")
    if requested is None:
        share = int(machine.memory_bytes * limits.SPARK_MEMORY_SHARE)
        wanted = max(limits.SPARK_MEMORY_BYTES_MIN, min(share, limits.SPARK_MEMORY_BYTES_USUAL_MAX))
    else:
        wanted = bytes_of_size(requested)
    if wanted < limits.SPARK_MEMORY_BYTES_MIN:
        raise LimitError(
            f"Spark needs at least {_format_size(limits.SPARK_MEMORY_BYTES_MIN)} of memory, and was given {requested}; "
            f"give it more (driver_memory), or do without Spark where the work is small",
            code="spark_memory",
        )
    if wanted > machine.memory_bytes:
        given = f"was given {requested}" if requested is not None else f"needs at least {_format_size(wanted)}"
        raise LimitError(
            f"Spark {given} of memory, and this machine has {_format_size(machine.memory_bytes)}; name a smaller "
            f"amount (driver_memory) or a larger machine (master)",
            code="spark_memory",
        )
    return wanted


def spark_conf(settings: SparkSettings, machine: Machine, *, folder: Path, python: str) -> dict[str, str]:
    """Every setting of a session.

    Args:
        settings: what was asked for; it wins.
        machine: what there is.
        folder: where Spark may keep files while it runs.
        python: the interpreter of its Python workers.

    Returns:
        dict[str, str]: by Spark's names.
    """
    chosen = settings.chosen
    master = chosen.get("spark.master", f"local[{machine.cores}]")
    package_folder = str(Path(__file__).resolve().parents[2])
    ours = {
        "spark.master": master,
        "spark.app.name": settings.app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": python,
        # Workers run what we run: the interpreter finds the same packages, this one included.
        "spark.executorEnv.PYTHONPATH": package_folder,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
    }
    if is_local(master):
        partitions = max(limits.SPARK_SHUFFLE_PARTITIONS_MIN, 2 * machine.cores)
        ours |= {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.local.dir": str(folder / "scratch"),
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
        }
    return ours | chosen


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine alone.

    Returns:
        bool: also for a cluster of several processes on this machine.
    """
    return master.startswith("local")


def is_one_process(master: str) -> bool:
    """Whether everything runs in the Java process of this session, on the disk of this machine.

    Returns:
        bool: False for any cluster; also for one of processes on this machine, which does all as a real one does.
    """
    return master == "local" or master.startswith("local[")


def _format_size(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size // 1024**2} MiB"
