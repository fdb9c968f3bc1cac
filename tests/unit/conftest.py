import pytest
from tests.support import operations as op

from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext


@pytest.fixture
def store() -> MemoryStore:
    """A store of the test's own, in memory."""
    return MemoryStore(f"test-{UlidSource().new()}")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that goes only when it is told to."""
    return ManualClock()


@pytest.fixture
def parts(store: MemoryStore, clock: ManualClock) -> GraphContext:
    """An empty graph in memory."""
    return op.new_graph(store, clock=clock)
