"""What this machine gives us: processors and memory, as far as the container we run in lets us have them."""

import os
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
# A limit above this is how the first kind of control groups spells "none".
_NO_LIMIT_BYTES = 2**60


@dataclass(frozen=True, slots=True)
class Machine:
    """What may be used.

    Attributes:
        cores: processors.
        memory_bytes: main memory.
    """

    cores: int
    memory_bytes: int


def this_machine(cgroup: Path = _CGROUP) -> Machine:
    """What this process may use of the machine it is on.

    Args:
        cgroup: where control groups are mounted.

    Returns:
        Machine: the smaller of what the machine has and what the container allows.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = [physical, *_memory_limits(cgroup)]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=max(1, min([usable, *_core_limits(cgroup)])), memory_bytes=min(allowed))


def _memory_limits(cgroup: Path) -> list[int]:
    texts = [_text(cgroup / "memory.max"), _text(cgroup / "memory" / "memory.limit_in_bytes")]
    return [int(text) for text in texts if text.isdigit() and int(text) < _NO_LIMIT_BYTES]


def _core_limits(cgroup: Path) -> list[int]:
    quota, _, period = _text(cgroup / "cpu.max").partition(" ")
    if not quota:
        quota = _text(cgroup / "cpu" / "cpu.cfs_quota_us")
        period = _text(cgroup / "cpu" / "cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit() or not int(period):
        return []
    return [-(-int(quota) // int(period))]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
