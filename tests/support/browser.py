"""The explorer, looked at in a browser: what it shows, and whatever it complained of or asked others for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from playwright.sync_api import Browser, Page

from omnigraph.testing.server import RunningServer

_LOOKS_MAX = 400
_BETWEEN_LOOKS_MS = 25


@dataclass(slots=True)
class Looked:
    """A page that was opened.

    Attributes:
        page: the page itself.
        url: of the server.
        trouble: what it complained of, and addresses elsewhere that it asked for.
    """

    page: Page
    url: str
    trouble: list[str] = field(default_factory=list)

    def open(self, view: str, *, branch: str = "main", words: str = "") -> Page:
        """Go to a view of the graph `library`, and wait until it is there."""
        self.page.goto(f"{self.url}/#/library/{branch}/{view}{words}")
        self.page.wait_for_selector("#views a[aria-current]")
        return self.page

    def state(self) -> dict[str, Any]:
        """What the drawing says that it shows, once it is at rest."""
        self.wait("window.omnigraph !== undefined && omnigraph.nodes.length > 0")
        self.page.evaluate("omnigraph.settle()")
        found: dict[str, Any] = self.page.evaluate("omnigraph.state()")
        return found

    def wait(self, condition: str) -> None:
        """Wait until something holds in the page, which lets nobody evaluate texts but its inspector.

        Raises:
            AssertionError: it never did.
        """
        for _ in range(_LOOKS_MAX):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(_BETWEEN_LOOKS_MS)
        raise AssertionError(f"it never was: {condition}")

    def labels(self) -> list[str]:
        """What can be read in the drawing."""
        return sorted(each["text"] for each in self.state()["labels"])


class Look(Protocol):
    """Opens a page of a server, with a session of its own."""

    def __call__(self, server: RunningServer, *, scheme: Literal["light", "dark"] = "light") -> Looked:
        """Open it."""


@contextmanager
def looking(browser: Browser) -> Iterator[Look]:
    """A way to open pages while the block runs.

    Raises:
        AssertionError: a page complained, or asked another host for something.
    """
    opened: list[Looked] = []

    def look(server: RunningServer, *, scheme: Literal["light", "dark"] = "light") -> Looked:
        context = browser.new_context(viewport={"width": 1280, "height": 820}, color_scheme=scheme)
        looked = Looked(context.new_page(), server.url)
        looked.page.on("console", lambda message: looked.trouble.append(message.text))
        looked.page.on("pageerror", lambda error: looked.trouble.append(str(error)))
        looked.page.on(
            "request",
            lambda request: None if request.url.startswith(server.url) else looked.trouble.append(request.url),
        )
        opened.append(looked)
        return looked

    try:
        yield look
    finally:
        for each in opened:
            each.page.context.close()
    # A refusal that a page asks for is told by the browser as well.
    told = [each for looked in opened for each in looked.trouble if "status of 4" not in each]
    assert told == []
