"""Who lists a graph's files and looks through its versions: this process, or many machines when there are very many.

Either way the same is read and the same is found; what becomes of it is decided elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Protocol

from omnigraph import limits
from omnigraph.branch.sweep.files import Candidate, listed_files
from omnigraph.errors import FormatError, UnavailableError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.graph_context import GraphContext

_READ_THREADS = 8
# The files of a version, or the error. Of several versions read together, a shared file need be listed for one only.
Files = frozenset[str] | UnavailableError | FormatError


class Reading(Protocol):
    """What a sweep must read of a graph's tables."""

    def listed(self) -> list[Candidate]:
        """Every file under the root.

        Raises:
            GraphError: a listing failed.
        """
        ...

    def files(self, pins: Sequence[Pin]) -> Iterable[Files]:
        """Return the files that versions refer to, or the error; one answer for each, in order.

        Raises:
            GraphError: nothing can be told of any.
        """
        ...


class ReadingHere:
    """Reads in this process."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def listed(self) -> list[Candidate]:
        """Every file under the root."""
        return list(listed_files(self._context))

    def some_listed(self, most: int) -> list[Candidate] | None:
        """List every file under the root; None if there are more than `most`."""
        found = list(islice(listed_files(self._context), most + 1))
        return found if len(found) <= most else None

    def files(self, pins: Sequence[Pin]) -> Iterator[Files]:
        """Which files versions refer to."""
        with ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="sweep") as pool:
            yield from pool.map(lambda pin: files_of(self._context.tables, pin), pins)


class ReadingBySize:
    """Reads in this process what is small, and elsewhere what is large."""

    def __init__(self, here: ReadingHere, elsewhere: Callable[[], Reading | None]) -> None:
        """Both."""
        self._here = here
        self._elsewhere = elsewhere

    def listed(self) -> list[Candidate]:
        """Every file under the root."""
        few = self._here.some_listed(limits.SWEEP_LOCAL_FILES_MAX)
        return few if few is not None else self._large().listed()

    def files(self, pins: Sequence[Pin]) -> Iterable[Files]:
        """Which files versions refer to."""
        return (self._here if len(pins) <= limits.SWEEP_LOCAL_VERSIONS_MAX else self._large()).files(pins)

    def _large(self) -> Reading:
        return self._elsewhere() or self._here


def files_of(tables: Tables, pin: Pin) -> Files:
    """Return the files a version refers to, or the error.

    A store that does not answer is asked again: a doubt spares every file of the table until the next sweep.
    """
    left = limits.STORE_RETRY_ATTEMPTS_MAX
    while True:
        left -= 1
        try:
            return tables.files(pin)
        except FormatError as fault:
            return fault
        except UnavailableError as fault:
            if not left:
                return fault
