"""The interactive prompt: statements over several lines, completion, commands, and a real keyboard's keys."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.support.command_line import Ended, Run

import omnigraph
from omnigraph.cli.shell.prompt import Terminal, _Colours, _SchemaCompleter
from omnigraph.cli.shell.session import COMMANDS, Session
from omnigraph.cli.shell.statement import as_query, is_complete
from omnigraph.clock import SystemClock
from omnigraph.ids import UlidSource
from omnigraph.language.query.completing import suggest_next
from omnigraph.language.schema import accept

Type = Callable[[str], Ended]


@pytest.fixture
def type_in(run: Run, library: str, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Types lines into a shell on the library."""

    def typed(lines: str) -> Ended:
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return run("shell", library)

    return typed


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\\timing",
        "match { $a: Author } return { $a.name }",
        "match { $a: Author } return { $a.name } limit 5",
        'insert Author { name: "}{" }',
        "update Book set { pages: 3 } where isbn = 1",
        'delete Author where name = "x"',
        "query q() { match { $a: Author } return { $a.name } }",
        "match { $a: Author };",
        "nonsense",
        "match } return",
        "\\explain match { $a: Author } return { $a.name }",
    ],
)
def test_a_statement_with_all_its_parts_is_over(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "match {",
        "match { $a: Author }",
        "match { $a: Author } return",
        "match { $a: Author } return {",
        'insert Author { name: "a',
        "match { $a: Author } /* return { $a.name }",
        "update Book set { pages: 3 }",
        "update Book set { pages: 3 } where isbn",
        "delete Author where",
        "query q()",
        "\\explain match {",
    ],
)
def test_a_statement_that_misses_something_goes_on_in_the_next_line(text: str) -> None:
    assert not is_complete(text)


def test_what_is_typed_without_a_name_gets_one() -> None:
    assert as_query("delete Author where name = 1;") == "query shell() {\ndelete Author where name = 1\n}"
    assert as_query("query q() { insert A { b: 1 } }") == "query q() { insert A { b: 1 } }"


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ma", ["match"]),
        ("match { $a: ", ["Author", "Book"]),
        ("match { $a: B", ["Book"]),
        ("match { $a: Author $a ", ["wrote"]),
        ("match { $a: Author $a wrote $b $b.", ["genre", "isbn", "pages", "title"]),
        ("match { $a: Author $a $w: wrote $b $w.y", ["year"]),
        ("match { $a: Author } return { $a.n", ["name"]),
        ("match { $abc: Author } return { $a", ["$abc"]),
        ("match { $b: Book { t", ["title"]),
        ("match { $b: Book { isbn: 1, p", ["pages"]),
        ("insert ", ["Author", "Book", "Wrote"]),
        ("insert Wrote { ", ["from", "to", "year"]),
        ("update Book set { g", ["genre"]),
        ("update Book set { pages: 1 } where i", ["isbn"]),
        ("match { $a: Author } re", ["return"]),
        ("match { $a: Author } return { cou", ["count("]),
        ('match { $a: Author { name: "', []),
    ],
)
def test_what_could_come_next_is_known_from_the_schema(text: str, expected: list[str], schema_text: str) -> None:
    schema = accept(schema_text, ids=UlidSource(SystemClock()))
    assert [each.text for each in suggest_next(text, schema)] == expected


def test_the_terminal_completes_commands_branches_and_statements(library: str) -> None:
    with omnigraph.open(library) as graph:
        graph.branches.create("review")
        completer = _SchemaCompleter(Session(graph, branch="main", actor=None, print_line=print, width=lambda: 80))

        def offered(text: str) -> list[str]:
            return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

        assert offered("\\") == list(COMMANDS)
        assert offered("\\branch r") == ["review"]
        assert offered("\\at ") == ["head"]
        assert offered("\\format j") == ["jsonl", "json"]
        assert offered("\\explain match { $a: A") == ["Author"]
        assert offered("match { $a: A") == ["Author"]


# --- what it answers --------------------------------------------------------------------------------------------------


def test_statements_read_and_write_and_may_span_lines(type_in: Type) -> None:
    ended = type_in(
        'insert Author { name: "Butler" }\n'
        "match {\n  $a: Author\n}\nreturn {\n  $a.name\n}\n"
        '\\set n "Butler"\n'
        "query one($n: String) { match { $a: Author { name: $n } } return { $a.name as it } }\n"
        "\\set\n"
    )
    assert ended == Ended(
        0,
        "changed main: 1 nodes, 0 edges\n"
        "1 rows from branch main via shell\na.name\n------\nButler\n"
        "1 rows from branch main via one\nit\n------\nButler\n"
        '$n = "Butler"\n',
        "",
    )


def test_the_prompt_goes_to_branches_and_to_earlier_states(run: Run, library: str, type_in: Type) -> None:
    run("tag", "create", "empty", "--store", library)
    run("branch", "create", "review", "--store", library)
    count = "match { $a: Author } return { count(*) as n }\n"
    ended = type_in(
        "\\branch review\n\\branch\n"
        'insert Author { name: "Butler" }\n' + count + "\\at empty\n\\at\n" + count + "\\at head\n\\at\n" + count
    )
    shown = [line for line in ended.out.splitlines() if not line.startswith(("n", "-", "1 rows from snapshot"))]
    assert shown == [
        "  main",
        "* review",
        "changed review: 1 nodes, 0 edges",
        "1 rows from branch review via shell",
        "1",
        "at empty",
        "0",
        "at the head of review",
        "1 rows from branch review via shell",
        "1",
    ]
    assert ended.code == 0


def test_the_past_cannot_be_written(run: Run, library: str, type_in: Type) -> None:
    run("tag", "create", "empty", "--store", library)
    ended = type_in('\\at empty\ninsert Author { name: "Butler" }\n')
    assert (ended.code, ended.err) == (
        1,
        "error: an earlier state cannot be changed; return to the head with \\at head\n",
    )


def test_plans_types_times_and_formats_are_a_word_away(type_in: Type, schema_text: str) -> None:
    ended = type_in(
        "\\explain match { $a: Author } return { $a.name }\n\\types\n\\format csv\n"
        "match { $a: Author } return { $a.name }\n\\timing\n\\timing\n\\schema\n\\help\n\\quit\nnonsense\n"
    )
    assert ended.code == 0
    assert "scan $a: Author" in ended.out
    assert "edge | Wrote  | 0\n" in ended.out
    assert "rows are printed as csv\na.name\ntiming is on\n" in ended.out
    assert "timing is off\n" in ended.out
    assert schema_text in ended.out
    assert all(command.usage in ended.out for command in COMMANDS.values())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("\\nonsense", "unknown command \\nonsense; see \\help"),
        ("\\branch nowhere", "branch 'nowhere' not found"),
        ("\\at nothing", "'nothing' is not a commit, a tag, or a time"),
        ("\\format xml", "unknown output format 'xml'"),
        ("\\explain", "\\explain needs a query"),
        ("match { $a: Nobody } return { $a.name }", "unknown node type `Nobody`"),
        ("match {", "parse error"),
    ],
)
def test_a_mistake_is_told_and_ends_a_run_without_a_terminal(type_in: Type, line: str, message: str) -> None:
    ended = type_in(f"{line}\n")
    assert ended.code == 1
    assert message in ended.err


def test_a_mistake_is_shown_in_the_line_in_which_it_was_typed(type_in: Type) -> None:
    ended = type_in("match {\n  $a: Nobody\n} return { $a.name }\n")
    assert " --> 2:3\n" in ended.err
    assert "2 |   $a: Nobody\n" in ended.err


def test_an_order_may_stand_in_the_next_line_of_a_file(type_in: Type) -> None:
    ended = type_in("match { $a: Author } return { $a.name as name }\norder { name }\nlimit 3\n\\types\n")
    assert ended.code == 0
    assert "0 rows from branch main via shell" in ended.out
    assert "node | Author | 0" in ended.out


def test_a_table_fits_the_window_and_becomes_lines_where_it_cannot(library: str) -> None:
    with omnigraph.open(library) as graph:
        graph.mutate('query q() { insert Book { isbn: "1", title: "' + "long " * 30 + '", genre: "fiction" } }')
        for window, heading in ((60, "isbn"), (20, "row 1")):
            said: list[str] = []
            session = Session(graph, branch="main", actor=None, print_line=said.append, width=partial(int, window))
            assert session.execute(
                "match { $b: Book } return { $b.isbn as isbn, $b.title as title, $b.genre as genre }"
            )
            assert said[1].startswith(heading)
            if window == 60:
                assert max(len(line) for line in said) <= window
                assert "…" in said[3]


# --- the keyboard -----------------------------------------------------------------------------------------------------


def test_keys_edit_lines_complete_words_and_leave(library: str, tmp_path: Path) -> None:
    said: list[str] = []
    with omnigraph.open(library) as graph, create_pipe_input() as keyboard:
        session = Session(graph, branch="main", actor=None, print_line=said.append, width=lambda: 80)
        history = tmp_path / "deep" / "history"
        terminal = Terminal(session, history=history, colours=True, source=keyboard, output=DummyOutput())
        # Enter inside brackets begins a new line; Ctrl-C drops what was typed; Ctrl-D leaves.
        keyboard.send_text("match { $a: Author }\r return { count(*) as n }\r")
        keyboard.send_text("never to be run\x03")
        keyboard.send_text("nonsense\r")
        keyboard.send_text("\x04")
        terminal.run()
    assert said[:4] == ["1 rows from branch main via shell", "n", "-", "0"]
    assert "unexpected `nonsense`" in said[4]
    assert len(said) == 5
    assert "+match { $a: Author }\n+ return { count(*) as n }" in history.read_text()


def test_the_prompt_says_where_it_looks(run: Run, library: str) -> None:
    run("tag", "create", "empty", "--store", library)
    with omnigraph.open(library) as graph:
        session = Session(graph, branch="main", actor=None, print_line=print, width=lambda: 80)
        assert session.prompt == "main> "
        session.execute("\\at empty")
        assert session.prompt == "main@empty> "


def test_colours_follow_the_tokens_and_lose_no_character() -> None:
    text = 'match { $a: Author { name: "Le Guin" } }  // all'
    parts = _Colours().lex_document(Document(text))(0)
    assert "".join(part[1] for part in parts) == text
    assert {part[1]: part[0] for part in parts}["match"] == "bold ansiblue"
    assert {part[1]: part[0] for part in parts}["$a"] == "ansicyan"
