"""Where a follower of a branch starts: a whole state, and the cursor that continues after it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from omnigraph.api.interface.snapshot import SnapshotInterface


@dataclass(frozen=True, slots=True)
class Baseline(ABC):
    """A whole state to start from, and the cursor that continues right after it.

    Attributes:
        snapshot: the state.
        resume_cursor: for the first poll.
    """

    snapshot: SnapshotInterface
    resume_cursor: str

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self.snapshot.commit

    def to_dict(self) -> dict[str, Any]:
        """Return the commit and the cursor as a JSON document."""
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.resume_cursor}

    @abstractmethod
    def lines(self) -> Iterator[bytes]:
        """Yield the state as JSON lines, like an export, and at the end one line with the commit and the cursor.

        The state is complete only if the last line arrived.
        """

    def write(self, stream: IO[bytes]) -> None:
        """Write the lines to a stream."""
        for line in self.lines():
            stream.write(line)
