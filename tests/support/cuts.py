"""Cutting a piece of work at every step it takes, one after the other, without knowing what the steps are.

The work is done again and again, each time on a graph of its own, and each time the next of its requests is the one
that fails, until a run comes through unharmed. So a step that is added tomorrow is cut tomorrow.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from omnigraph.errors import GraphError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

_CUTS_MAX = 500
FOR_EVER = 1_000_000
"""As `times` of a fault: from the chosen request on, nothing works until the fault is disarmed."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One run that was cut.

    Attributes:
        where: which step, for messages.
        store: the graph's store, with nothing armed any more.
        raised: what came out of the work; None if it went through all the same.
    """

    where: str
    store: FaultyStore
    raised: GraphError | Crash | None


class Copies:
    """Any number of copies of one graph on local disk, each to be spoilt."""

    def __init__(self, template: Path, folder: Path) -> None:
        """Copies of a graph.

        Args:
            template (Path): the graph's root; it is not changed. One that is not there stands for an empty folder.
            folder (Path): where the copies go.
        """
        self._template = template
        self._folder = folder
        self._names = count(1)

    def fresh(self) -> FaultyStore:
        """A copy nobody has touched.

        Returns:
            FaultyStore: of its root.
        """
        root = self._folder / f"copy-{next(self._names)}"
        if self._template.exists():
            shutil.copytree(self._template, root)
        return FaultyStore(LocalStore(root, durability=Durability.PROCESS))

    def of(self, store: FaultyStore) -> "Copies":
        """Copies of a copy, as it is now.

        Args:
            store (FaultyStore): of the copy.

        Returns:
            Copies: in the same folder.
        """
        return Copies(Path(store.uri), Path(store.uri).with_suffix(".copies"))

    def throw_away(self, store: FaultyStore) -> None:
        """Make room.

        Args:
            store (FaultyStore): of a copy that is no longer needed.
        """
        shutil.rmtree(store.uri, ignore_errors=True)


def at_every_request(
    copies: Copies,
    fault: Fault,
    work: Callable[[FaultyStore], object],
    *,
    kind: RequestKind | None = None,
    path_part: str = "",
    times: int = 1,
    or_none: bool = False,
) -> Iterator[Cut]:
    """Do the work once for each of its requests, with a fault at that one.

    Args:
        copies (Copies): what it is done on.
        fault (Fault): what happens to the request.
        work (Callable[[FaultyStore], object]): the work. What it does before the faults count must not write.
        kind (RequestKind | None): count only these requests; None for all that change something.
        path_part (str): count only requests about paths that contain this.
        times (int): to how many requests in a row the fault happens.
        or_none (bool): whether the work may do without any such request; a test that means to cut something must not
            pass because there was nothing to cut.

    Yields:
        Cut: each run, while its graph is still there.
    """
    for at in range(1, _CUTS_MAX):
        store = copies.fresh()
        chosen = store.arm(fault, at=at, times=times, kind=kind, path_part=path_part)
        raised: GraphError | Crash | None = None
        try:
            work(store)
        except (GraphError, Crash) as fault_met:
            raised = fault_met
        store.disarm()
        if not chosen.hit.is_set():
            copies.throw_away(store)
            if raised is not None:
                raise raised
            assert at > 1 or or_none, "the work makes no such request: nothing was tried"
            return
        yield Cut(f"{fault} at request {at}", store, raised)
        copies.throw_away(store)
    raise AssertionError(f"the work takes more than {_CUTS_MAX} requests")


def at_every_failpoint(
    copies: Copies,
    work: Callable[[FaultyStore], object],
    places: Iterable[Failpoint] = Failpoint,
    *,
    or_none: bool = False,
) -> Iterator[Cut]:
    """Do the work once for each named place it comes through, dying there.

    Args:
        copies (Copies): what it is done on.
        work (Callable[[FaultyStore], object]): the work.
        places (Iterable[Failpoint]): which places to try.
        or_none (bool): whether the work may come through none of them.

    Yields:
        Cut: each run, while its graph is still there.
    """
    tried = or_none
    for place in places:
        store = copies.fresh()
        with armed(place, _die), suppress(Crash):
            work(store)
            copies.throw_away(store)
            continue
        tried = True
        yield Cut(f"death at {place}", store, Crash(place))
        copies.throw_away(store)
    assert tried, "the work comes through none of these places: nothing was tried"


def _die() -> None:
    raise Crash
