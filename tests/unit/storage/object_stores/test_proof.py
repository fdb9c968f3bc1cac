from collections.abc import Iterator
from dataclasses import replace

from omnigraph.ids import UlidSource
from omnigraph.storage.object_store import PROBE_FOLDER, Listed, prove_by_trying
from omnigraph.storage.object_stores.obstore_backed import MemoryStore

HOUR_US = 3_600_000_000


class TwoHoursLater(MemoryStore):
    """Lists one object with the time it was given two hours before."""

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        for listed in super().list(prefix, limit=limit):
            is_old = listed.path.endswith("left")
            yield replace(listed, modified_us=listed.modified_us - 2 * HOUR_US) if is_old else listed


def test_what_a_process_that_died_while_it_tried_has_left_goes_and_that_of_the_living_stays() -> None:
    store = TwoHoursLater()
    store.put(f"{PROBE_FOLDER}left", b"first")
    store.put(f"{PROBE_FOLDER}living", b"first")
    assert prove_by_trying(store, UlidSource()) > 0
    assert [listed.path for listed in store.list("")] == [f"{PROBE_FOLDER}living"]
