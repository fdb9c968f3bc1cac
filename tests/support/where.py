"""Which state of a graph a read is about, as tests hand it on to whatever reads."""

from typing import TypedDict

from omnigraph.branch.point import Instant


class Where(TypedDict, total=False):
    """The arguments by which every read of a graph names a state; `**where: Unpack[Where]`."""

    branch: str
    commit: str
    number: int
    tag: str
    at: Instant
