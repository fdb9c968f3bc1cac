"""Servers of graphs in this process, for the command line to talk to over a socket."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn

from omnigraph.server.app import create_app
from omnigraph.server.settings import ServerSettings

Serve = Callable[[ServerSettings], str]


@contextmanager
def _serving(settings: ServerSettings) -> Iterator[str]:
    """The application on a free port; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, access_log=False, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            # The socket listens already: whoever comes before the application is ready waits there.
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves graphs until the test ends."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(_serving(settings))


@pytest.fixture
def operator_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator without any configuration yet."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    for variable in ("OMNIGRAPH_PROFILE", "OMNIGRAPH_BEARER_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    return home
