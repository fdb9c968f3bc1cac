"""Progress of a load, for a callback."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is.

    Attributes:
        stage: what is being done, in a word or two.
        rows: records read so far.
        bytes: of the files, so far.
        bytes_total: of the files, in all.
    """

    stage: str
    rows: int = 0
    bytes: int = 0
    bytes_total: int = 0


Watch = Callable[[LoadProgress], None]


def ignore_progress(_: LoadProgress) -> None:
    """Ignore progress; the default callback."""
