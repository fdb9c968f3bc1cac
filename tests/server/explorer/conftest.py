"""A library that is served, and a browser that looks at it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.support.browser import Look, looking

import omnigraph
from omnigraph.testing.server import RunningServer, served

CHROMIUM = shutil.which("chromium")
LIBRARY = """
node Author { name: String @key  born: Date?  bio: String? }
node Book { isbn: String @key  title: String @index  pages: I32?  genre: enum(fiction, science)? }
node Reader { name: String @key }
edge Wrote: Author -> Book { year: I32? }
edge Knows: Author -> Author
edge Follows: Reader -> Reader
"""
AUTHORS = ("Le Guin", "Butler", "Lem", "Russ", "Delany")
BOOKS = (
    ("0-1", "The Dispossessed", 341, "Le Guin"),
    ("0-2", "Kindred", 264, "Butler"),
    ("0-3", "Solaris", 204, "Lem"),
    ("0-4", "The Female Man", 214, "Russ"),
    ("0-5", "The Left Hand of Darkness", 286, "Le Guin"),
)
POLICY = """
version: 1
groups: { readers: [ann], editors: [bob], guests: [cyd] }
protected_branches: [main]
rules:
  - id: readers-read
    allow: { actors: { group: readers }, actions: [read] }
  - id: guests-read-ideas
    allow: { actors: { group: guests }, actions: [read], branch_scope: unprotected }
  - id: editors-read
    allow: { actors: { group: editors }, actions: [read] }
  - id: editors-write
    allow: { actors: { group: editors }, actions: [change], branch_scope: any }
  - id: editors-branch
    allow: { actors: { group: editors }, actions: [branch_create, branch_merge], target_branch_scope: any }
"""


def make_library(folder: Path, *, readers: int) -> Path:
    """Some authors and their books; a branch with a conflict, and one without; readers who follow each other."""
    where = folder / "library"
    with omnigraph.init(where, LIBRARY) as graph:
        graph.write(
            nodes={
                "Author": [{"name": name} for name in AUTHORS],
                "Book": [{"isbn": isbn, "title": title, "pages": pages} for isbn, title, pages, _ in BOOKS],
                "Reader": [{"name": f"reader {at}"} for at in range(readers)],
            },
            edges={
                "Wrote": [{"from": author, "to": isbn} for isbn, _, _, author in BOOKS],
                "Knows": [{"from": "Le Guin", "to": "Lem"}, {"from": "Lem", "to": "Delany"}],
                "Follows": [
                    {"from": f"reader {at}", "to": f"reader {at * 7919 % (at // 3 or 1)}"} for at in range(readers)
                ],
            },
        )
        for branch in ("review", "idea"):
            graph.branches.create(branch)
        graph.mutate('query q() { update Book set { pages: 400 } where isbn = "0-1" }', branch="review", actor="ann")
        graph.mutate(
            'query q() { insert Author { name: "Jemisin" } }', branch="review", actor="ann", message="one more"
        )
        graph.mutate('query q() { insert Author { name: "Tiptree" } }', branch="idea")
        graph.mutate(
            'query q() { update Book set { pages: 399 } where isbn = "0-1" }', actor="bob", message="as counted"
        )
    return where


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """An open server, shared by the tests of a module: write only what is your own."""
    with served(
        "--store", str(make_library(tmp_path_factory.mktemp("explored"), readers=2_000)), "--unauthenticated"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with tokens: ann reads, bob also writes and merges, cyd reads what is not protected."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "policy.yaml").write_text(POLICY)
    words = ("--store", str(make_library(folder, readers=2)), "--policy", str(folder / "policy.yaml"))
    tokens = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({each: f"token-of-{each}" for each in ("ann", "bob", "cyd")})
    }
    with served(*words, environment=tokens) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Opens pages of a server, each with a session of its own, and fails where one complained or asked elsewhere."""
    with looking(browser) as look:
        yield look
