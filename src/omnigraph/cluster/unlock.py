"""Taking the lock from somebody who died with it."""

from pathlib import Path

from omnigraph.cluster import layout
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.lock import LockFaultError
from omnigraph.cluster.outcome import Outcome
from omnigraph.cluster.site import Means, Site, usual_means


def force_unlock(folder: Path, lock_id: str, *, means: Means | None = None) -> Outcome:
    """Remove a lock.

    Args:
        folder: of the configuration.
        lock_id: of the lock, so that nobody removes another one than they saw.
        means: what to work with; real stores by default.

    Returns:
        Whether it was removed.
    """
    said = Diagnostics()
    site = None
    is_removed = False
    try:
        site = Site(folder, means or usual_means(), said=said, reads_files=False)
        site.require_configuration()
        site.look_at_lock()
        site.lock.break_open(lock_id)
        is_removed = True
        site.read()
    except LockFaultError as fault:
        said.error(fault.code, layout.LOCK, str(fault))
    except StoppedError:
        pass
    document = {
        "ok": said.is_ok,
        "config_dir": str(folder),
        "state_observations": {} if site is None else site.observations(),
        "lock_removed": is_removed,
        "diagnostics": said.to_json(),
    }
    summary = f"cluster force-unlock: removed lock {lock_id}" if is_removed else "cluster force-unlock failed"
    return Outcome(document, (summary,), tuple(said))
