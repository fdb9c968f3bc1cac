"""The explorer where there is little room, and much, little or nothing to show."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.support.browser import Look, Looked

import omnigraph
from omnigraph.testing.server import RunningServer, served

VIEWS = ("query", "explore", "schema", "branches", "history")
PHONE = {"width": 390, "height": 844}
LONG_NAME = "a-branch/" + "with-a-long-name-" * 6
SCHEMA = """
node Author { name: String @key  bio: String? }
node Book { isbn: String @key }
edge Wrote: Author -> Book
"""
MANY = "\n".join(
    [
        f"node Type{at:03} {{ name: String @key  {'  '.join(f'p{each}: String?' for each in range(8))} }}"
        for at in range(80)
    ]
    + [f"edge Link{at:03}: Type{at:03} -> Type{at * 7 % 80:03}" for at in range(20)]
)


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A graph of long texts, with a branch of a long name and one in conflict."""
    where = tmp_path_factory.mktemp("wordy") / "library"
    with omnigraph.init(where, SCHEMA) as graph:
        graph.write(
            nodes={
                "Author": [{"name": "Le Guin", "bio": "word " * 800}, {"name": "X" * 300}],
                "Book": [{"isbn": "0-1"}],
            },
            edges={"Wrote": [{"from": "Le Guin", "to": "0-1"}]},
        )
        for branch in (LONG_NAME, "review"):
            graph.branches.create(branch)
        for branch, bio in (("review", "one " * 400), ("main", "other " * 400)):
            graph.mutate(f'query q() {{ update Author set {{ bio: "{bio}" }} where name = "Le Guin" }}', branch=branch)
    with served("--store", str(where), "--unauthenticated") as running:
        yield running


@pytest.fixture(scope="module")
def many_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A hundred types, and not a single entity."""
    where = tmp_path_factory.mktemp("many") / "library"
    omnigraph.init(where, MANY).close()
    with served("--store", str(where), "--unauthenticated") as running:
        yield running


def run_query(page: Page, text: str) -> None:
    page.locator("textarea").fill(text)
    page.keyboard.press("Control+Enter")


def on_phone(look: Look, server: RunningServer) -> Looked:
    looked = look(server)
    looked.page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    return looked


def too_wide(page: Page) -> list[str]:
    """What reaches out of the window, and cannot be scrolled to within something of its own."""
    found: list[str] = page.evaluate("""() => {
        const scrolls = (each) => {
            for (let up = each.parentElement; up && up.id !== "main"; up = up.parentElement)
                if (/auto|scroll|hidden/.test(getComputedStyle(up).overflowX)) return true;
            return false;
        };
        const isOut = (each) => each.getBoundingClientRect().right > innerWidth + 1 && each.id !== "skip";
        return [...document.querySelectorAll("body *")].filter((each) => isOut(each) && !scrolls(each))
            .map((each) => `${each.tagName} ${each.className}`);
    }""")
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_phone(look: Look, wordy: RunningServer, view: str) -> None:
    looked = on_phone(look, wordy)
    page = looked.open(view, branch="review", words="?type=Author&id=Le%20Guin" if view == "explore" else "")
    expect(page.locator("#views a").last).to_be_in_viewport(ratio=1)
    expect(page.locator("#help")).to_be_in_viewport(ratio=1)
    assert too_wide(page) == []


def test_a_merge_is_reviewed_on_a_phone(look: Look, wordy: RunningServer) -> None:
    page = on_phone(look, wordy).open("branches", branch="review", words="?source=review&target=main&show=merge")
    expect(page.get_by_text("One conflict")).to_be_visible()
    expect(page.get_by_text("No differences.")).to_have_count(0)
    assert too_wide(page) == []
    page.locator("input[type=radio][value=source]").check()
    expect(page.get_by_text("all decided")).to_be_visible()


def test_on_a_phone_nothing_lies_over_the_number_of_rows_and_a_mistake_points_where_it_is(
    look: Look, wordy: RunningServer
) -> None:
    page = on_phone(look, wordy).open("query")
    run_query(page, "query q() { match { $a: Author } return { $a.name as name } }")
    rows, tabs = page.get_by_text("2 rows").bounding_box(), page.get_by_role("tablist").bounding_box()
    assert rows is not None and tabs is not None
    assert rows["x"] + rows["width"] <= tabs["x"] or rows["y"] + rows["height"] <= tabs["y"]
    run_query(page, "query q() { match { $a: Autor } return { $a, $a, $a, $a, $a, $a, $a, $a, $a, $a } }")
    told = page.get_by_role("alert")
    expect(told).to_contain_text("^")
    # As many lines as were told: none is folded, so the mark stands under what is wrong.
    lines = told.evaluate("(each) => each.textContent.split('\\n').length")
    height = told.evaluate("(each) => (each.clientHeight - 20) / parseFloat(getComputedStyle(each).lineHeight)")
    assert round(height) == lines


def test_long_values_are_opened_by_whoever_wants_them(look: Look, wordy: RunningServer) -> None:
    page = look(wordy).open("query")
    run_query(page, "query q() { match { $a: Author } return { $a.name as name, $a.bio as bio } order { name } }")
    cell = page.locator("tbody tr").first.locator("td").nth(1)
    expect(cell).to_contain_text("2,400 characters")
    assert cell.evaluate("(each) => each.clientHeight") < 200
    cell.locator("summary").focus()
    page.keyboard.press("Enter")
    assert cell.evaluate("(each) => each.clientHeight") > 200
    # A column without any value is none of numbers.
    run_query(
        page, 'query q() { match { $a: Author { name: "' + "X" * 300 + '" } } return { $a.name, $a.bio as bio } }'
    )
    expect(page.locator("th", has_text="bio")).not_to_have_class("num")


def test_a_hundred_types_can_be_told_apart(look: Look, many_types: RunningServer) -> None:
    looked = look(many_types)
    page = looked.open("schema")
    names = [each for each in looked.labels() if each.startswith("Type")]
    assert len(names) > 30, "cards too small to be read have their names beside them"
    page.locator("input[type=search]").fill("Type07")
    looked.wait("omnigraph.state().found === 10")
    page.get_by_role("tab", name="Types").click()
    expect(page.locator("tbody tr")).to_have_count(100)
    assert too_wide(page) == []


def test_a_graph_without_entities_says_so_and_does_not_fail(look: Look, many_types: RunningServer) -> None:
    looked = look(many_types)
    page = looked.open("query")
    expect(page.locator("textarea")).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("No rows.")).to_be_visible()
    looked.open("explore")
    expect(page.get_by_text("Choose a node to start.")).to_be_visible()
    looked.open("branches")
    expect(page.get_by_text("There is only main.")).to_be_visible()
    looked.open("history")
    expect(page.get_by_text("Commit 1")).to_be_visible()
