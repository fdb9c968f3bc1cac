"""Where whoever follows a branch begins, wherever the graph is: a whole state, and the cursor that goes on after it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Generic

from omnigraph.api.at_commit import At


@dataclass(frozen=True, slots=True)
class Baseline(ABC, Generic[At]):
    """A whole state to begin from, and the cursor that goes on exactly after it.

    Attributes:
        snapshot: the state.
        resume_cursor: for the first poll.
    """

    snapshot: At
    resume_cursor: str

    @property
    def commit(self) -> str:
        """The commit whose state it is."""
        return self.snapshot.commit

    def to_dict(self) -> dict[str, Any]:
        """The end of the baseline as a JSON document."""
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.resume_cursor}

    def lines(self) -> Iterator[bytes]:
        """The state as JSON lines, like an export, and at the end one line with the commit and the cursor.

        Only whoever has the last line has the whole state.

        Returns:
            Iterator[bytes]: whole lines.
        """
        return self._lines()

    def write(self, stream: IO[bytes]) -> None:
        """Write the lines.

        Args:
            stream (IO[bytes]): where to.
        """
        for line in self.lines():
            stream.write(line)

    @abstractmethod
    def _lines(self) -> Iterator[bytes]: ...
