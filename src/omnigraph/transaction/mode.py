"""What a write does about entities that are there already."""

from enum import StrEnum

from omnigraph.errors import InvalidRequestError


class Mode(StrEnum):
    """What to do about entities that are there already."""

    APPEND = "append"  # refuse them
    MERGE = "merge"  # put the new row in the place of the old
    OVERWRITE = "overwrite"  # the rows given become the whole content of their types
    PATCH = "patch"  # set only the properties that are named, and keep the others


def mode_named(mode: Mode | str, *, code: str | None = None, can_patch: bool = False) -> Mode:
    """Return the mode of a name; `can_patch` says whether the caller knows `patch`."""
    known = [member for member in Mode if can_patch or member is not Mode.PATCH]
    if mode not in known:
        raise InvalidRequestError(f"unknown mode '{mode}'; one of {', '.join(known)}", code=code)
    return Mode(mode)
