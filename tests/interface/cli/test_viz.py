"""What `omnigraph viz` draws, looked at in a real browser."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.support.command_line import Run

from omnigraph.drawing.drawing import Drawing

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed on this machine")

BOOKS = """\
{"type":"Author","data":{"name":"Le Guin"}}
{"type":"Author","data":{"name":"Butler"}}
{"type":"Author","data":{"name":"Lem"}}
{"type":"Book","data":{"isbn":"0-1","title":"The Dispossessed","genre":"fiction"}}
{"type":"Book","data":{"isbn":"0-2","title":"Kindred","genre":"fiction","pages":264}}
{"edge":"Wrote","from":"Le Guin","to":"0-1"}
{"edge":"Wrote","from":"Butler","to":"0-2"}
"""
PATTERN = "query written() { match { $a: Author $a wrote $b } return { count($b) as n } order { n desc } limit 1 }"

# How many points of the canvas have another colour than its corner, and how many there are.
INKED = """() => {
  const canvas = document.getElementById("canvas");
  const points = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return [points.filter((each) => each !== points[points.length - 1]).length, points.length];
}"""


@pytest.fixture
def shelf(run: Run, library: str, tmp_path: Path) -> str:
    """The library with some books in it."""
    (tmp_path / "books.jsonl").write_text(BOOKS)
    data = str(tmp_path / "books.jsonl")
    assert run("load", library, "--data", data, "--mode", "append", "--engine", "local", "--quiet").code == 0
    return library


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Looked:
    """A page that was opened, and whatever it complained of or asked the network for."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.trouble: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1200, "height": 800})
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda request: self.trouble.append(request.url))
        self.page.goto(path.as_uri())
        self.page.evaluate("omnigraph.settle()")
        self.trouble.remove(path.as_uri())

    def state(self) -> dict[str, Any]:
        """What the page says that it shows."""
        found: dict[str, Any] = self.page.evaluate("omnigraph.state()")
        return found

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Look again until something holds; the page itself lets nobody evaluate texts but its inspector."""
        for _ in range(400):
            if holds():
                return
            self.page.wait_for_timeout(25)
        raise AssertionError("it never was")

    def labels(self) -> list[str]:
        """What can be read on the canvas."""
        return sorted(each["text"] for each in self.state()["labels"])


def drawing_of(path: Path) -> dict[str, Any]:
    """What a page draws."""
    found = re.search(r'<script id="drawing" type="application/json">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    drawing: dict[str, Any] = json.loads(found[1])
    return drawing


def overlapping(labels: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of labels of which one lies over the other."""
    return [
        (a["text"], b["text"])
        for at, a in enumerate(labels)
        for b in labels[:at]
        if a["box"][0] < b["box"][2]
        and a["box"][2] > b["box"][0]
        and a["box"][1] < b["box"][3]
        and a["box"][3] > b["box"][1]
    ]


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_a_pattern_is_drawn_with_its_nodes_and_edges_whatever_the_query_returns(
    run: Run, shelf: str, tmp_path: Path
) -> None:
    out = tmp_path / "q.html"
    ended = run("viz", "query", "--store", shelf, "-e", PATTERN, "--out", str(out))
    assert (ended.code, ended.out) == (0, f"drew 4 nodes and 2 links: {out}\n")
    drawing = drawing_of(out)
    assert sorted(node["label"] for node in drawing["nodes"]) == ["Butler", "Kindred", "Le Guin", "The Dispossessed"]
    ends = {(drawing["nodes"][link["source"]]["label"], link["label"]) for link in drawing["links"]}
    assert ends == {("Le Guin", "Wrote"), ("Butler", "Wrote")}
    kindred = next(node for node in drawing["nodes"] if node["label"] == "Kindred")
    assert kindred["details"]["pages"] == 264


def test_order_and_limit_of_rows_choose_what_is_drawn(run: Run, shelf: str, tmp_path: Path) -> None:
    out = tmp_path / "q.html"
    query = "query last() { match { $a: Author } return { $a.born } order { $a.name desc } limit 2 }"
    assert run("viz", "query", "--store", shelf, "-e", query, "--out", str(out)).code == 0
    assert [node["label"] for node in drawing_of(out)["nodes"]] == ["Lem", "Le Guin"]
    assert run("viz", "query", "--store", shelf, "-e", query, "--limit", "1", "--out", str(out)).code == 0
    assert [node["label"] for node in drawing_of(out)["nodes"]] == ["Lem"]


def test_an_optional_part_that_is_missing_is_left_out(run: Run, shelf: str, tmp_path: Path) -> None:
    out = tmp_path / "q.html"
    query = "query all() { match { $a: Author optional { $a wrote $b } } return { $a } }"
    assert "5 nodes and 2 links" in run("viz", "query", "--store", shelf, "-e", query, "--out", str(out)).out


def test_a_mutation_cannot_be_drawn(run: Run, shelf: str, tmp_path: Path) -> None:
    query = 'query add() { insert Author { name: "X" } }'
    ended = run("viz", "query", "--store", shelf, "-e", query, "--out", str(tmp_path / "q.html"))
    assert ended.code == 1
    assert "'add' is a mutation: only what a query reads can be drawn" in ended.err
    assert not (tmp_path / "q.html").exists()


def test_a_difference_marks_what_came_changed_and_went(run: Run, shelf: str, tmp_path: Path) -> None:
    run("branch", "create", "review", "--store", shelf)
    for change in (
        'insert Author { name: "Russ" }',
        'update Book set { pages: 300 } where isbn = "0-2"',
        'delete Author where name = "Le Guin"',
    ):
        mutation = f"query q() {{ {change} }}"
        assert run("mutate", "--store", shelf, "--branch", "review", "-e", mutation).code == 0
    out = tmp_path / "d.html"
    assert run("viz", "diff", "main", "review", "--store", shelf, "--out", str(out)).code == 0
    drawing = drawing_of(out)
    marks = {node["label"]: node["mark"] for node in drawing["nodes"]}
    assert marks == {"Russ": "inserted", "Kindred": "updated", "Le Guin": "deleted", "0-1": "unchanged"}
    assert [link["mark"] for link in drawing["links"]] == ["deleted"]
    kindred = next(node for node in drawing["nodes"] if node["label"] == "Kindred")
    assert kindred["details"]["pages"] == {"before": 264, "after": 300}


def test_a_difference_of_two_branches_leaves_out_what_the_other_did_meanwhile(
    run: Run, shelf: str, tmp_path: Path
) -> None:
    run("branch", "create", "review", "--store", shelf)
    for branch, name in (("review", "Russ"), ("main", "Tiptree")):
        mutation = f'query q() {{ insert Author {{ name: "{name}" }} }}'
        assert run("mutate", "--store", shelf, "--branch", branch, "-e", mutation).code == 0
    out = tmp_path / "d.html"
    for words, labels in (
        (["main", "review"], {"Russ": "inserted"}),
        (["main...review"], {"Russ": "inserted"}),
        (["main..review"], {"Russ": "inserted", "Tiptree": "deleted"}),
    ):
        assert run("viz", "diff", *words, "--store", shelf, "--out", str(out)).code == 0
        assert {node["label"]: node["mark"] for node in drawing_of(out)["nodes"]} == labels
        found = run("diff", *words, "--store", shelf, "--json")
        assert {change["id"] for change in json.loads(found.out)["changes"]} == set(labels)
    ended = run("diff", "review", "--store", shelf)
    assert (ended.code, "name two states to compare, like 'main review' or 'main...review'" in ended.err) == (1, True)


def test_no_text_of_a_graph_can_leave_the_place_it_stands_in() -> None:
    drawing = Drawing("</title><script>alert(1)</script>")
    drawing.node("x", "</script><script>alert(2)</script>", "<b>")
    page = drawing.page()
    assert "alert(1)</script>" not in page
    assert "alert(2)</script>" not in page
    assert page.count("</script>") == 2


def test_a_page_names_no_other_address() -> None:
    assert re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+|\bsrc=|\bhref=|@import|url\(", Drawing("x").page()) == []


# --- in the browser ---------------------------------------------------------------------------------------------------


@needs_chromium
def test_a_schema_shows_as_cards_without_any_help_from_the_network(
    run: Run, shelf: str, tmp_path: Path, browser: Browser
) -> None:
    out = tmp_path / "s.html"
    assert run("viz", "schema", shelf, "--out", str(out)).code == 0
    looked = Looked(browser, out)
    assert looked.labels() == ["Wrote  2"]
    assert looked.page.locator("#legend b").all_inner_texts() == ["Author", "Book", "Wrote"]
    place = looked.page.evaluate("omnigraph.place('Book  2')")
    looked.page.mouse.click(*place)
    assert looked.page.locator("#panel h2").text_content() == "Book  2"
    assert looked.page.locator("#panel dt").all_inner_texts() == ["entities", "genre", "isbn", "pages", "title"]
    assert looked.trouble == []


@needs_chromium
def test_history_shows_every_commit_branch_and_tag(run: Run, shelf: str, tmp_path: Path, browser: Browser) -> None:
    run("tag", "create", "v1", "--store", shelf)
    run("branch", "create", "review", "--store", shelf)
    for branch in ("review", "main"):
        mutation = f'query q() {{ insert Author {{ name: "{branch}" }} }}'
        assert run("mutate", "--store", shelf, "--branch", branch, "-e", mutation).code == 0
    assert run("branch", "merge", "review", "--store", shelf).code == 0
    out = tmp_path / "h.html"
    assert run("viz", "history", shelf, "--out", str(out)).code == 0
    looked = Looked(browser, out)
    assert looked.state()["nodes"] == 5
    assert looked.state()["links"] == 5
    assert looked.labels() == ["[main] merge +1", "[review] mutation +1", "init", "mutation +1", "‹v1› load +7"]
    assert looked.trouble == []


@needs_chromium
def test_thousands_of_nodes_come_to_rest_with_labels_that_can_be_read(tmp_path: Path, browser: Browser) -> None:
    drawing = Drawing("crowd")
    for at in range(4_000):
        drawing.node(at, f"person {at}", "Person", details={"number": at})
    for at in range(1, 4_000):
        drawing.link(at, (at * 7919) % max(at // 3, 1), "Knows")
    out = tmp_path / "crowd.html"
    out.write_text(drawing.page())
    looked = Looked(browser, out)
    state = looked.state()
    assert (state["nodes"], state["links"], state["settled"]) == (4_000, 3_999, True)
    assert len(state["labels"]) > 20
    assert overlapping(state["labels"]) == []
    assert min(each["size"] for each in state["labels"]) >= 12
    inked, all_pixels = looked.page.evaluate(INKED)
    assert 0.02 < inked / all_pixels < 0.9
    # Found by typing, gone to by Enter, shown by its details.
    looked.page.keyboard.press("/")
    looked.page.keyboard.type("person 1234")
    assert looked.state()["found"] == 1
    looked.page.keyboard.press("Enter")
    assert looked.page.locator("#panel dd").all_inner_texts() == ["1234"]
    assert looked.state()["selected"] == "person 1234"
    looked.page.keyboard.press("Escape")
    assert looked.state()["selected"] is None
    before = looked.state()["zoom"]
    looked.page.mouse.move(600, 400)
    looked.page.mouse.wheel(0, -400)
    looked.wait_until(lambda: looked.state()["zoom"] > before)
    assert looked.trouble == []


# Moves a drawing step by step, without a pause in which it could rest: what each frame draws, and the step after all.
MOVED = """() => {
  const drawn = [];
  const step = (move) => { move(); omnigraph.frame(); drawn.push(omnigraph.state().drawn); };
  for (let k = 0; k < 10; k += 1) step(() => omnigraph.pan(8, 5));
  for (let k = 0; k < 10; k += 1) step(() => omnigraph.zoom(1.03));
  return drawn;
}"""


@needs_chromium
def test_moving_thousands_of_nodes_costs_one_picture_a_frame_and_zooming_in_what_is_in_sight(
    tmp_path: Path, browser: Browser
) -> None:
    drawing = Drawing("crowd")
    for at in range(5_000):
        drawing.node(at, f"person {at}", "Person", details={"number": at})
    for at in range(1, 5_000):
        drawing.link(at, (at * 7919) % max(at // 3, 1), "Knows")
        drawing.link(at, (at * 104729) % 5_000, "Likes")
    out = tmp_path / "crowd.html"
    out.write_text(drawing.page())
    looked = Looked(browser, out)
    assert looked.state()["drawn"]["nodes"] == 5_000
    assert looked.page.evaluate(MOVED) == [{"nodes": 0, "links": 0}] * 20
    inked, all_pixels = looked.page.evaluate(INKED)
    assert inked / all_pixels > 0.02, "the picture is there"
    # At rest everything is drawn anew, by itself.
    looked.wait_until(lambda: looked.state()["drawn"]["nodes"] > 1_000)
    # Far in, what is out of sight is not drawn.
    looked.page.evaluate("omnigraph.zoom(30)")
    looked.wait_until(lambda: 0 < looked.state()["drawn"]["nodes"] < 200)
    assert looked.state()["drawn"]["links"] < 2_000
    assert looked.trouble == []


@needs_chromium
def test_a_small_drawing_names_every_node_and_no_name_lies_on_another_node(tmp_path: Path, browser: Browser) -> None:
    drawing = Drawing("shelf")
    for at in range(24):
        drawing.node(at, f"a rather long title of {at}", "Book")
    for at in range(1, 24):
        drawing.link(at, at // 3, "Cites")
    out = tmp_path / "shelf.html"
    out.write_text(drawing.page())
    looked = Looked(browser, out)
    labels = looked.state()["labels"]
    assert len(labels) == 24
    assert overlapping(labels) == []
    middles = {each["text"]: looked.page.evaluate("label => omnigraph.place(label)", each["text"]) for each in labels}
    covered = [
        (each["text"], name)
        for each in labels
        for name, (x, y) in middles.items()
        if each["box"][0] < x < each["box"][2] and each["box"][1] < y < each["box"][3]
    ]
    assert covered == []


@needs_chromium
def test_a_group_can_be_hidden_and_shown_again(tmp_path: Path, browser: Browser) -> None:
    drawing = Drawing("two groups")
    drawing.link(drawing.node(1, "one", "A"), drawing.node(2, "two", "B"), "To")
    out = tmp_path / "two.html"
    out.write_text(drawing.page())
    looked = Looked(browser, out)
    assert looked.labels() == ["one", "two"]
    looked.page.locator("#legend li").first.click()
    looked.page.evaluate("omnigraph.settle()")
    assert looked.labels() == ["two"]
    looked.page.locator("#legend li").first.click()
    looked.page.evaluate("omnigraph.settle()")
    assert looked.labels() == ["one", "two"]
