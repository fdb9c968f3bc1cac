"""What every operator is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from omnigraph.execution.frame import Frame
from omnigraph.execution.results import Results
from omnigraph.execution.run import Run
from omnigraph.execution.scope import Scope


class Rows(Scope, Protocol):
    """A batch of rows of either kind: under way, or of the result."""

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        ...


Batch = TypeVar("Batch", Frame, Results)
Batch_co = TypeVar("Batch_co", bound=Rows, covariant=True)


class Operator(ABC, Generic[Batch_co]):
    """Makes batches of rows. It keeps nothing of a run, so any number of runs may use it at once."""

    @property
    def once_each(self) -> str | None:
        """A variable whose nodes come in one row each at most; None where there is none for sure."""
        return None

    @abstractmethod
    def batches(self, run: Run, given: Frame | None) -> Iterator[Batch_co]:
        """The rows, a batch at a time; none is empty.

        Args:
            run (Run): the execution.
            given (Frame | None): inside another operator, the rows of that one.
        """


Frames = Operator[Frame]
ResultRows = Operator[Results]
