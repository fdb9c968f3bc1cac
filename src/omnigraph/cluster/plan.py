"""Showing what an apply would do; nothing is changed."""

from pathlib import Path

from omnigraph.cluster import layout
from omnigraph.cluster.changes import blast_radius
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.outcome import Outcome
from omnigraph.cluster.planning import Planned, planned
from omnigraph.cluster.site import Means, Site, usual_means


def plan(folder: Path, *, means: Means | None = None) -> Outcome:
    """Show what an apply would do.

    Args:
        folder: of the configuration.
        means: what to work with; real stores by default.

    Returns:
        The changes, what each of them touches, and whose word is needed.
    """
    said = Diagnostics()
    site = None
    found = Planned([], {})
    try:
        site = Site(folder, means or usual_means(), said=said)
        desired = site.usable.desired
        with site.locked("plan"):
            written = site.read()
            if not written.is_there:
                message = "this cluster has no ledger yet, so everything is new; run: omnigraph cluster import"
                said.warning("state_missing", layout.STATE, message)
            site.warn_of_pending_work()
            found = planned(site, desired, written.state)
    except StoppedError:
        pass
    configuration = None if site is None else site.configuration
    desired_digests = {} if configuration is None else configuration.desired.digests
    document = {
        "ok": said.is_ok,
        "config_dir": str(folder),
        "desired_revision": {} if configuration is None else {"config_digest": configuration.desired.config_digest},
        "resource_digests": desired_digests,
        "dependencies": [] if configuration is None else configuration.desired.dependencies_json(),
        "state_observations": {} if site is None else site.observations(),
        "changes": [each.to_json() for each in found.changes],
        "blast_radius": [] if configuration is None else blast_radius(found.changes, configuration.desired),
        "approvals_required": found.gates(),
        "diagnostics": said.to_json(),
    }
    if not said.is_ok and not found.changes:
        return Outcome(document, ("cluster plan failed",), tuple(said))
    lines = [each.planned_line() for each in found.changes] or ["  no changes"]
    summary = f"cluster plan: {len(found.changes)} change(s), {len(found.gates())} approval gate(s)"
    return Outcome(document, (summary, *lines), tuple(said))
