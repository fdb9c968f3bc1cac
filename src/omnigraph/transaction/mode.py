"""What a write does about entities that are there already."""

from enum import StrEnum

from omnigraph.errors import InvalidRequestError


class Mode(StrEnum):
    """What to do about entities that are there already."""

    APPEND = "append"  # refuse them
    MERGE = "merge"  # put the new row in the place of the old
    OVERWRITE = "overwrite"  # the rows given become the whole content of their types


def mode_named(mode: Mode | str, *, code: str | None = None) -> Mode:
    """The mode of a name."""
    try:
        return Mode(mode)
    except ValueError:
        raise InvalidRequestError(f"unknown mode '{mode}'; one of {', '.join(Mode)}", code=code) from None
