"""The ancestry of commits cut from a log, on-disk version 1: one JSON document per branch."""

import json

from omnigraph.errors import FormatError
from omnigraph.model.ancestry import Ancestor, CutCommit, CutLog, Place

VERSION = 1


def ancestry_bytes(cut: CutLog) -> bytes:
    """Serialize the ancestry of a cut log."""
    document = {
        "format": VERSION,
        "branch": cut.branch,
        "first": cut.first,
        "commits": [
            {
                "commit": known.commit,
                "number": known.number,
                "parents": None
                if known.parents is None
                else [
                    [parent.commit, parent.place.branch, parent.place.number, parent.steps] for parent in known.parents
                ],
            }
            for known in cut.commits
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def read_ancestry(body: bytes, *, path: str) -> CutLog:
    """Parse the ancestry of a cut log.

    Raises:
        FormatError: it is damaged, or newer than this release.
    """
    try:
        found = json.loads(body)
        if found["format"] > VERSION:
            raise FormatError(f"the ancestry {path} has format {found['format']}: upgrade omnigraph first")
        return CutLog(
            str(found["branch"]),
            int(found["first"]),
            tuple(
                CutCommit(
                    str(known["commit"]),
                    int(known["number"]),
                    None
                    if known["parents"] is None
                    else tuple(
                        Ancestor(str(commit), Place(str(branch), int(number)), int(steps))
                        for commit, branch, number, steps in known["parents"]
                    ),
                )
                for known in found["commits"]
            ),
        )
    except (ValueError, KeyError, TypeError) as fault:
        raise FormatError(f"the ancestry {path} is damaged: {fault}", path=path) from fault
