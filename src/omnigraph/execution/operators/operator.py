"""Operator interface."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from omnigraph.execution.frame import Frame
from omnigraph.execution.results import Results
from omnigraph.execution.run import Run
from omnigraph.execution.scope import Scope


class Rows(Scope, Protocol):
    """Batch of intermediate or result rows."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        ...


Batch = TypeVar("Batch", Frame, Results)
Batch_co = TypeVar("Batch_co", bound=Rows, covariant=True)


class Operator(ABC, Generic[Batch_co]):
    """Produces batches of rows. Holds no state of a run, so concurrent runs may share it."""

    @property
    def unique_variable(self) -> str | None:
        """A variable whose nodes occur in at most one row each; None if none is certain."""
        return None

    @abstractmethod
    def batches(self, run: Run, given: Frame | None) -> Iterator[Batch_co]:
        """Yield the rows, in non-empty batches.

        Args:
            run: the execution.
            given: inside another operator, the rows of that one.
        """


Frames = Operator[Frame]
ResultRows = Operator[Results]
