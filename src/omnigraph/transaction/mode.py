"""What a write does about entities that are there already."""

from enum import StrEnum


class Mode(StrEnum):
    """What to do about entities that are there already."""

    APPEND = "append"  # refuse them
    MERGE = "merge"  # put the new row in the place of the old
    OVERWRITE = "overwrite"  # the rows given become the whole content of their types
