"""A server that takes requests and never answers ends every request, ours and the table library's."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.s3_server import options_for

from omnigraph import limits
from omnigraph.errors import UnavailableError
from omnigraph.model.commit import Pin
from omnigraph.storage.object_store import OutcomeUnknown, StoreTransient
from omnigraph.storage.object_stores.open import table_options
from omnigraph.storage.object_stores.s3 import S3Store
from omnigraph.storage.tables.tables import Tables

LIMIT_S = 1.0
# The table library tries a few times by itself, and waits between.
LONGEST_S = 30.0


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that accepts connections and says nothing."""
    monkeypatch.setattr(limits, "STORE_REQUEST_TIMEOUT_S", LIMIT_S)
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connections.append(listener.accept()[0])
                except OSError:
                    return

        accepting = threading.Thread(target=accept)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    accepting.join()
    for connection in connections:
        connection.close()


def test_every_request_of_a_store_and_of_its_tables_ends(silent: str) -> None:
    store = S3Store("bucket", "graph", options=options_for(silent))
    tables = Tables(store.uri, storage_options=table_options(store))
    requests = (
        lambda: store.get("a"),
        lambda: list(store.list("a/")),
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: store.delete("a"),
        lambda: tables.files(Pin("nodes/x", 1 << 63 | 1, 0, 0)),
    )

    with ThreadPoolExecutor(len(requests)) as pool:
        asked = [pool.submit(request) for request in requests]
        failed = [type(one.exception(timeout=LONGEST_S)) for one in asked]

    assert failed == [*([StoreTransient] * 3), OutcomeUnknown, StoreTransient, UnavailableError]
