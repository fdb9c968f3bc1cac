"""Saying whether a configuration makes sense; no storage is asked."""

from pathlib import Path

from omnigraph.cluster import layout
from omnigraph.cluster.desired import read_configuration
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.outcome import Outcome


def validate(folder: Path) -> Outcome:
    """Check the configuration in a folder.

    Args:
        folder: the folder.

    Returns:
        What there is in it, and everything that is wrong with it.
    """
    said = Diagnostics()
    found = read_configuration(folder, said)
    resources = {} if found is None else found.desired.resources
    edges = [] if found is None else found.desired.dependencies_json()
    document = {
        "ok": said.is_ok,
        "config_dir": str(folder),
        "config_file": str(folder / layout.CONFIG_FILE),
        "resource_digests": {} if found is None else found.desired.digests,
        "resources": [each.to_json() for each in resources.values()],
        "dependencies": edges,
        "diagnostics": said.to_json(),
    }
    summary = f"cluster config valid: {len(resources)} resource(s), {len(edges)} dependency edge(s)"
    return Outcome(document, (summary if said.is_ok else "cluster config invalid",), tuple(said))
