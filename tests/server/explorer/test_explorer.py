"""The explorer in a real browser, before a real server and a real graph."""

import re

import httpx
from playwright.sync_api import Page, expect
from tests.support.browser import Look

from omnigraph.testing.server import RunningServer

WROTE = """query wrote() {
  match { $a: Author  $a wrote $b }
  return { $a.name, $b.title, $b.pages }
  order { $b.pages desc }
}"""
# What has the focus, and whether that can be seen.
FOCUSED = """(() => {
  const e = document.activeElement, style = getComputedStyle(e.tagName === "TEXTAREA" ? e.parentElement : e);
  const called = e.id || e.getAttribute("aria-label") || e.textContent.trim();
  return [called, style.outlineStyle !== "none" || style.boxShadow !== "none"];
})()"""


def run_query(page: Page, text: str) -> None:
    page.locator("textarea").fill(text)
    page.locator("textarea").press("Control+Enter")


def pages_of(server: RunningServer, isbn: str, branch: str = "main") -> int:
    query = f'query q() {{ match {{ $b: Book {{ isbn: "{isbn}" }} }} return {{ $b.pages as pages }} }}'
    with server.client() as client:
        answer = client.post("/graphs/library/query", json={"query": query, "branch": branch})
    found: int = answer.json()["rows"][0]["pages"]
    return found


# --- queries ----------------------------------------------------------------------------------------------------------


def test_a_query_is_answered_with_a_table(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    expect(page.locator("textarea")).to_be_focused()
    run_query(page, WROTE)
    expect(page.locator("th")).to_have_text(["a.name", "b.title", "b.pages"])
    expect(page.locator("tbody tr").first).to_have_text("Le GuinThe Dispossessed399")
    expect(page.get_by_text("5 rows")).to_be_visible()
    page.reload()
    expect(page.locator("textarea")).to_have_value(WROTE)


def test_a_mistake_is_shown_where_it_is(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    run_query(page, "query q() { match { $a: Autor } return { $a } }")
    expect(page.get_by_role("alert")).to_contain_text("did you mean `Author`?")
    expect(page.get_by_role("alert")).to_contain_text("^")


def test_many_rows_come_some_at_a_time(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    run_query(page, "query q() { match { $r: Reader } return { $r.name } }")
    expect(page.get_by_text("2,000 rows")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(200)
    page.get_by_role("button", name="200 more of 1,800").click()
    expect(page.locator("tbody tr")).to_have_count(400)


def test_parameters_have_fields_and_the_right_query_is_chosen(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    page.locator("textarea").fill(
        "query other() { match { $b: Book } return { count($b) as n } }\n"
        "query longer($least: I32, $like: String) { match { $b: Book  $b.pages > $least  $b.title contains $like } "
        "return { $b.title } }"
    )
    page.get_by_label("Name of the query").select_option("longer")
    page.get_by_placeholder("I32").fill("250")
    page.get_by_placeholder("String").fill("in")
    page.get_by_placeholder("String").press("Enter")
    expect(page.locator("tbody tr")).to_have_text(["Kindred"])


def test_words_are_completed_from_the_schema(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    area = page.locator("textarea")
    area.fill("")
    area.press_sequentially("query q() { match { $a: Au")
    options = page.locator("#words li")
    expect(options).to_have_text(["Authornode type"])
    area.press("Tab")
    expect(area).to_have_value(re.compile(r"\$a: Author$"))
    expect(area).to_be_focused()
    area.press_sequentially(" $a w")
    expect(options).to_have_text(["wroteAuthor -> Book"])
    area.press("Enter")
    area.press_sequentially(" $b } return { $b.")
    expect(options).to_have_count(4)
    area.press("ArrowDown")
    area.press("ArrowDown")
    expect(page.locator("#words li[aria-selected=true]")).to_have_text("pagesI32?")
    area.press("Enter")
    area.press_sequentially(" } or")
    expect(options.first).to_contain_text("order")
    area.press("Escape")
    expect(page.locator("#words")).to_be_hidden()
    expect(area).to_have_value("query q() { match { $a: Author $a wrote $b } return { $b.pages } or")


def test_a_result_is_seen_as_a_graph_and_grows_by_the_edges_of_a_node(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("query")
    run_query(page, 'query q() { match { $a: Author { name: "Butler" }  $a wrote $b } return { $b } }')
    page.get_by_role("tab", name="Graph").click()
    page.wait_for_selector(".graph canvas")
    assert looked.labels() == ["Butler", "Kindred"]
    page.mouse.click(*page.evaluate("omnigraph.place('Kindred')"))
    expect(page.locator(".facts h2")).to_have_text("Kindred")
    expect(page.locator(".facts dd")).to_have_text(["—", "0-2", "264", "Kindred"])
    run_query(page, 'query q() { match { $a: Author { name: "Lem" } } return { $a } }')
    looked.wait("omnigraph.state().nodes === 1")
    page.mouse.click(*page.evaluate("(omnigraph.settle(), omnigraph.place('Lem'))"))
    page.get_by_role("button", name="Expand").click()
    looked.wait("omnigraph.state().nodes === 4")
    assert looked.labels()[:4] == ["Delany", "Knows", "Knows", "Le Guin"]
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator("pre.text")).to_contain_text("Author")


def test_thousands_of_nodes_come_to_rest_and_are_found(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("query")
    page.get_by_role("tab", name="Graph").click()
    run_query(page, "query q() { match { $r: Reader  $r follows $s } return { $r } }")
    looked.wait("window.omnigraph && omnigraph.state().nodes === 2000")
    state = looked.state()
    assert (state["links"], state["settled"]) == (2_000, True)
    assert len(state["labels"]) > 20
    page.locator("canvas").focus()
    page.keyboard.press("/")
    page.keyboard.type("reader 1234")
    assert looked.state()["found"] == 1
    page.keyboard.press("Enter")
    expect(page.locator(".facts h2")).to_have_text("reader 1234")
    expect(page.locator("canvas")).to_be_focused()


def test_a_mutation_is_carried_out_only_when_it_is_meant(look: Look, server: RunningServer) -> None:
    page = look(server).open("query", branch="idea")
    change = 'query q() { update Book set { pages: 205 } where isbn = "0-3" }'
    page.locator("textarea").fill(change)
    expect(page.get_by_role("button", name="Write to idea")).to_be_visible()
    page.locator("textarea").press("Control+Enter")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert pages_of(server, "0-3", "idea") == 204
    page.get_by_role("button", name="Write to idea").click()
    page.get_by_role("dialog").get_by_role("button", name="Write").click()
    expect(page.get_by_text("1 nodes and 0 edges changed on idea.")).to_be_visible()
    assert (pages_of(server, "0-3", "idea"), pages_of(server, "0-3")) == (205, 204)


# --- looking around ---------------------------------------------------------------------------------------------------


def test_a_neighbourhood_is_walked_with_the_keyboard_alone(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("explore")
    page.get_by_label("Type", exact=True).select_option("Author")
    expect(page.get_by_label("Node", exact=True)).to_be_focused()
    page.keyboard.type("gui")
    expect(page.locator("#found li")).to_have_text(["Le Guin"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("canvas")).to_be_focused()
    assert page.url.endswith("explore?type=Author&id=Le+Guin")
    expect(page.locator(".facts h2")).to_have_text("Le Guin")
    assert looked.state()["nodes"] == 4
    # To Lem, who knows Delany.
    for _ in range(12):
        if page.locator(".facts h2").inner_text() == "Lem":
            break
        lem, here = page.evaluate(
            "(omnigraph.settle(), [omnigraph.place('Lem'), omnigraph.place(omnigraph.state().selected)])"
        )
        dx, dy = lem[0] - here[0], lem[1] - here[1]
        page.keyboard.press(
            ("ArrowRight" if dx > 0 else "ArrowLeft") if abs(dx) > abs(dy) else "ArrowDown" if dy > 0 else "ArrowUp"
        )
    expect(page.locator(".facts h2")).to_have_text("Lem")
    page.keyboard.press("Enter")
    looked.wait("omnigraph.state().nodes === 6")
    expect(page.locator("#status")).to_contain_text("2 more neighbours of Lem")
    page.go_back()
    expect(page.get_by_text("Choose a node to start.")).to_be_visible()


def test_a_node_is_found_by_its_name_or_by_its_id(look: Look, server: RunningServer) -> None:
    page = look(server).open("explore")
    page.get_by_label("Type", exact=True).select_option("Book")
    for typed, offered, title in (
        ("the f", ["The Female Man0-4"], "The Female Man"),
        ("0-5", [], "The Left Hand of Darkness"),
    ):
        page.get_by_label("Node", exact=True).fill(typed)
        expect(page.locator("#found li")).to_have_text(offered)
        page.get_by_label("Node", exact=True).press("Enter")
        expect(page.locator(".facts h2")).to_have_text(title)


def test_a_node_that_is_not_there_is_told(look: Look, server: RunningServer) -> None:
    page = look(server).open("explore", words="?type=Author&id=Nobody")
    expect(page.get_by_role("alert")).to_have_text("there is no Author 'Nobody'")


def test_the_schema_is_a_picture_a_table_and_a_text(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("schema")
    page.wait_for_selector("canvas")
    looked.wait("window.omnigraph && omnigraph.state().nodes === 3")
    assert looked.labels() == ["Follows  2,000", "Knows  2", "Wrote  5"]
    page.get_by_role("tab", name="Picture").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Types")).to_be_focused()
    expect(page.locator("tbody tr").filter(has_text="Wrote")).to_contain_text("Author → Book")
    expect(page.locator("tbody tr").filter(has_text="isbn").first).to_contain_text("◆ isbn")
    page.keyboard.press("ArrowRight")
    expect(page.locator("pre.text")).to_contain_text("edge Wrote: Author -> Book { year: I32? }")


# --- branches ---------------------------------------------------------------------------------------------------------


def test_a_branch_is_compared_with_another(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("branches")
    page.get_by_role("button", name="review", exact=True).click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="Jemisin")).to_contain_text("insert")
    expect(rows.filter(has_text="0-1")).to_contain_text("341 → 400")  # since the merge base; main has 399 by now
    page.get_by_label("Show", exact=True).select_option(label="between the heads")
    expect(rows.filter(has_text="0-1")).to_contain_text("399 → 400")
    page.get_by_label("Show", exact=True).select_option(label="since the merge base")
    expect(rows.filter(has_text="0-1")).to_contain_text("341 → 400")
    page.get_by_role("tab", name="Picture").click()
    page.wait_for_selector("canvas")
    looked.wait("window.omnigraph && omnigraph.state().nodes === 2")
    assert looked.labels() == ["Jemisin", "The Dispossessed"]
    expect(page.locator(".side li b")).to_have_text(["inserted", "updated"])


def test_a_merge_is_reviewed_conflict_by_conflict_and_carried_out(look: Look, server: RunningServer) -> None:
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        assert client.post("branches", json={"name": "merged-into"}).status_code == 200
    page = look(server).open("branches", words="?source=review&target=merged-into&show=merge")
    conflict = page.locator("fieldset.conflict")
    expect(conflict).to_have_count(1)
    expect(conflict.locator("legend")).to_have_text("Book 0-1")
    expect(conflict.locator("dd.differs")).to_have_text(["400", "341", "399"])
    merge = page.get_by_role("button", name="Merge into merged-into")
    expect(merge).to_be_disabled()
    expect(page.get_by_text("1 undecided")).to_be_visible()
    page.get_by_role("radio", name="merged-into").check()
    expect(page.get_by_text("all decided")).to_be_visible()
    page.get_by_role("radio", name="review").check()
    page.get_by_label("Message").fill("looked at")
    merge.click()
    expect(page.locator("#status")).to_contain_text("merged review into merged-into")
    expect(page.get_by_text("is already up to date")).to_be_visible()
    assert (pages_of(server, "0-1", "merged-into"), pages_of(server, "0-1")) == (400, 399)


def test_what_somebody_faster_did_is_reviewed_too(look: Look, server: RunningServer) -> None:
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        for name in ("slow", "fast"):
            assert client.post("branches", json={"name": name}).status_code == 200
        for name, isbn, pages in (("slow", "0-3", 1), ("slow", "0-4", 2), ("fast", "0-3", 3)):
            change = f'query q() {{ update Book set {{ pages: {pages} }} where isbn = "{isbn}" }}'
            assert client.post("mutate", json={"query": change, "branch": name}).status_code == 200
        page = look(server).open("branches", words="?source=slow&target=fast&show=merge")
        page.get_by_role("button", name="All from slow").click()
        change = 'query q() { update Book set { pages: 4 } where isbn = "0-4" }'
        assert client.post("mutate", json={"query": change, "branch": "fast"}).status_code == 200
    merge = page.get_by_role("button", name="Merge into fast")
    merge.click()
    expect(page.get_by_role("alert")).to_contain_text("changed since the preview")
    expect(page.locator("fieldset.conflict")).to_have_count(2)
    expect(page.get_by_text("1 undecided")).to_be_visible()
    page.locator("fieldset.conflict").filter(has_text="0-4").get_by_role("radio", name="fast").check()
    merge.click()
    expect(page.locator("#status")).to_contain_text("merged slow into fast")
    assert (pages_of(server, "0-3", "fast"), pages_of(server, "0-4", "fast")) == (1, 4)


def test_a_branch_is_made_from_the_one_that_is_shown(look: Look, server: RunningServer) -> None:
    page = look(server).open("branches", branch="idea")
    page.get_by_role("button", name="New branch").click()
    page.get_by_role("dialog").get_by_label("Name").fill("a/new one")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="a/new one", exact=True)).to_have_attribute("aria-current", "true")
    expect(page.get_by_text("No differences.")).to_be_visible()


def test_history_shows_every_branch_and_what_a_commit_did(look: Look, server: RunningServer) -> None:
    looked = look(server)
    page = looked.open("history")
    page.wait_for_selector("canvas")
    assert {"[review] one more", "init"} <= set(looked.labels())
    page.get_by_role("button", name=re.compile("^as counted")).click()
    expect(page.locator("tbody tr")).to_contain_text("341 → 399")
    expect(page.get_by_text(re.compile("main · bob$"))).to_be_visible()


# --- everywhere -------------------------------------------------------------------------------------------------------


def test_everything_is_reached_with_the_tab_key_and_seen_when_it_is(look: Look, server: RunningServer) -> None:
    page = look(server).open("query")
    page.locator("textarea").wait_for()
    page.locator("#skip").focus()
    seen = []
    for _ in range(16):
        page.keyboard.press("Tab")
        told = page.evaluate(FOCUSED)
        seen.append(told[0])
        assert told[1], f"the focus on {told[0]} cannot be seen"
        if told[0] == "Table":
            break
    expected = [
        "graph",
        "branch",
        "Query",
        "Explore",
        "Schema",
        "Branches",
        "History",
        "help",
        "Query",
        "Run",
        "Table",
    ]
    assert [each for each in seen if each != "main"] == expected


def test_keys_change_the_view_and_a_question_mark_lists_them(look: Look, server: RunningServer) -> None:
    page = look(server).open("schema")
    page.locator("canvas").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("run the query")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for key, title in (("5", "History"), ("4", "Branches"), ("2", "Explore")):
        page.keyboard.press(key)
        expect(page.locator("#views a[aria-current]")).to_have_text(title)
    expect(page.get_by_label("Node", exact=True)).to_be_focused()
    page.keyboard.press("5")
    expect(page.get_by_label("Node", exact=True)).to_have_value("5")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator("textarea")).to_be_focused()


def test_light_and_dark_follow_the_machine(look: Look, server: RunningServer) -> None:
    papers = set()
    for looked in (look(server, scheme="light"), look(server, scheme="dark")):
        papers.add(looked.open("query").evaluate("getComputedStyle(document.body).backgroundColor"))
    assert papers == {"rgb(251, 250, 247)", "rgb(20, 22, 26)"}


def test_no_text_of_a_graph_is_ever_read_as_a_page(look: Look, server: RunningServer) -> None:
    evil = "<img src=x onerror=alert(1)>"
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        client.post("branches", json={"name": evil})
        body = {"query": "query q($n: String) { insert Author { name: $n } }", "params": {"n": evil}, "branch": evil}
        assert client.post("mutate", json=body).status_code == 200
    looked = look(server)
    page = looked.open("branches", words=f"?{httpx.QueryParams({'source': evil, 'target': 'main'})}")
    expect(page.locator("tbody tr").filter(has_text=evil)).to_have_count(1)
    expect(page.get_by_role("button", name=evil)).to_be_visible()
    assert page.locator("img[src=x]").count() == 0


def test_a_merge_is_decided_property_by_property_and_shows_what_it_does_to_the_schema(
    look: Look, server: RunningServer
) -> None:
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        for name in ("cells", "cells-into"):
            assert client.post("branches", json={"name": name}).status_code == 200
        for name, changes in (("cells", 'pages: 7, title: "Sevens"'), ("cells-into", 'pages: 8, title: "Eights"')):
            change = f'query q() {{ update Book set {{ {changes} }} where isbn = "0-3" }}'
            assert client.post("mutate", json={"query": change, "branch": name}).status_code == 200
        text = client.get("schema", params={"branch": "cells"}).json()["schema_source"]
        body = {
            "schema_source": text.replace("edge Knows: Author -> Author", ""),
            "branch": "cells",
            "allow_data_loss": True,
        }
        assert client.post("schema/apply", json=body).status_code == 200
    page = look(server).open("branches", words="?source=cells&target=cells-into&show=merge")
    expect(page.locator("ul.schema-steps li")).to_contain_text(["drop edge type 'Knows'"])
    expect(page.locator("ul.schema-steps b")).to_have_text([": loses 2 rows"])
    page.get_by_label("decide property by property").check()
    expect(page.locator("fieldset.property > legend")).to_have_text(["pages", "title"])
    expect(page.get_by_text("2 undecided")).to_be_visible()
    page.get_by_role("group", name="pages", exact=True).get_by_role("radio", name="cells 7").check()
    expect(page.get_by_text("1 undecided")).to_be_visible()
    page.get_by_role("group", name="title", exact=True).get_by_role("radio", name="cells-into Eights").check()
    page.get_by_role("button", name="Merge into cells-into").click()
    expect(page.locator("#status")).to_contain_text("merged cells into cells-into")
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        query = 'query q() { match { $b: Book { isbn: "0-3" } } return { $b.pages as pages, $b.title as title } }'
        found = client.post("query", json={"query": query, "branch": "cells-into"}).json()
    assert found["rows"] == [{"pages": 7, "title": "Eights"}]


# --- who may see what -------------------------------------------------------------------------------------------------


def give(page: Page, token: str) -> None:
    page.get_by_role("dialog").get_by_label("Bearer token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_token_is_asked_for_and_kept_in_this_tab_only(look: Look, guarded: RunningServer) -> None:
    page = look(guarded).page
    page.goto(guarded.url)
    expect(page.get_by_role("dialog")).to_contain_text("This server needs a token.")
    give(page, "wrong")
    expect(page.get_by_role("dialog")).to_contain_text("This token is not valid.")
    give(page, "token-of-ann")
    expect(page.locator("#actor")).to_have_text("ann")
    expect(page.locator("textarea")).to_be_visible()
    kept = page.evaluate(
        "[JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href]"
    )
    assert "token-of-ann" in kept[0]
    assert not any("token-of-ann" in each for each in kept[1:])
    assert "token-of-ann" not in guarded.logs
    page.get_by_role("button", name="Forget token").click()
    expect(page.get_by_role("dialog")).to_contain_text("This server needs a token.")
    assert "token-of-ann" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_only_what_is_permitted_is_offered(look: Look, guarded: RunningServer) -> None:
    for token, may in (("token-of-ann", False), ("token-of-bob", True)):
        page = look(guarded).page
        page.goto(f"{guarded.url}/#/library/main/branches?source=idea&target=main&show=merge")
        give(page, token)
        expect(page.locator(".op.inserted")).to_have_text("1 inserted")
        expect(page.get_by_role("button", name="New branch")).to_be_visible(visible=may)
        expect(page.get_by_role("button", name="Merge into main")).to_be_visible(visible=may)
        expect(page.get_by_text("You may not merge into main.")).to_be_visible(visible=not may)


def test_a_branch_that_may_not_be_read_is_told_and_others_are_shown(look: Look, guarded: RunningServer) -> None:
    page = look(guarded).page
    page.goto(f"{guarded.url}/#/library/main/query")
    give(page, "token-of-cyd")
    expect(page.get_by_role("alert")).to_contain_text("Not permitted: policy denied action 'read' on branch 'main'")
    page.goto(f"{guarded.url}/#/library/idea/query")
    run_query(page, WROTE)
    expect(page.locator("tbody tr")).to_have_count(5)
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    expect(page.locator("#views a[aria-current]")).to_have_text("Schema")
    expect(page.locator(".side li b").first).to_have_text("Author")
