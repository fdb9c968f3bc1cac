"""`omnigraph mcp` in a process of its own, asked by the protocol's own client over stdin and stdout."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent

import omnigraph
from omnigraph import limits
from omnigraph.api.graph import Graph
from omnigraph.errors import GraphError, LimitError, PermissionDeniedError
from omnigraph.mcp.answers import compact_json, truncate
from omnigraph.mcp.server import create_server
from omnigraph.mcp.tools import Permissions, Tools

SCHEMA = """\
node Person { name: String @key  about: String?  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
NAMES = "query names() { match { $p: Person } return { $p.name as name } order { name } }"
T = TypeVar("T")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of some people, which several agents ask."""
    where = tmp_path_factory.mktemp("agents") / "people"
    with omnigraph.init(where, SCHEMA) as graph:
        graph.write(
            nodes={
                "Person": [
                    {"name": "Ada", "about": "wrote the first programme", "age": 36},
                    {"name": "Grace", "about": "found the first bug, and compiled", "age": 85},
                    {"name": "Edsger", "about": "considered harmful", "age": 72},
                ],
                "City": [{"name": "London"}],
            },
            edges={
                "Knows": [{"from": "Ada", "to": "Grace", "since": 1950}, {"from": "Grace", "to": "Edsger"}],
                "LivesIn": [{"from": "Ada", "to": "London"}],
            },
        )
    return where


def command(place: Path, *words: str) -> StdioServerParameters:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OMNIGRAPH_")}
    environment["OMNIGRAPH_HOME"] = str(place.parent / "home")
    return StdioServerParameters(
        command=sys.executable, args=["-m", "omnigraph.cli", "mcp", str(place), *words], env=environment
    )


def talk(door: StdioServerParameters | MCPServer, say: Callable[[Client], Awaitable[T]]) -> T:
    """One conversation with an agent's door: it is opened, asked, and closed."""

    async def conversation() -> T:
        async with Client(door) as client:
            return await say(client)

    return anyio.run(conversation)


def document(answer: CallToolResult) -> dict[str, Any]:
    """What was answered, which is the same for programs and for models."""
    [text] = answer.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == answer.structured_content
    found: dict[str, Any] | None = answer.structured_content
    assert found is not None
    return found


def test_an_agent_reads_everything_and_can_write_nothing(place: Path) -> None:
    async def say(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["branch", "diff", "neighbourhood", "query", "schema", "search"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert client.instructions is not None
        assert "Ask for the schema first" in client.instructions

        schema = document(await client.call_tool("schema"))
        assert schema["schema"] == SCHEMA
        [person] = [each for each in schema["types"] if each["name"] == "Person"]
        assert (person["count"], person["key"], person["properties"]["age"]) == (3, ["name"], "I32?")
        [knows] = [each for each in schema["types"] if each["name"] == "Knows"]
        assert (knows["kind"], knows["from"], knows["to"]) == ("edge", "Person", "Person")

        asked = "query old($least: I32) { match { $p: Person  $p.age > $least } return { $p.name } order { $p.age } }"
        rows = document(await client.call_tool("query", {"query": asked, "params": {"least": 40}}))
        assert rows["rows"] == [{"p.name": "Edsger"}, {"p.name": "Grace"}]
        assert (rows["is_cut"], rows["graph_commit_id"]) == (False, schema["graph_commit_id"])

        near = document(await client.call_tool("neighbourhood", {"type": "Person", "id": "Ada", "depth": 2}))
        assert {each["id"]: each["distance"] for each in near["nodes"]} == {
            "Ada": 0,
            "Grace": 1,
            "London": 1,
            "Edsger": 2,
        }
        assert len(near["edges"]) == 3

        found = document(await client.call_tool("search", {"text": "bug first"}))
        assert [each["id"] for each in found["matches"]] == ["Grace", "Ada"]
        assert found["matches"][0]["property"] == "about"
        [misspelled] = document(await client.call_tool("search", {"text": "hermful", "misspelled": True}))["matches"]
        assert misspelled["id"] == "Edsger"

        assert document(await client.call_tool("branch"))["branches"] == ["main"]
        same = document(await client.call_tool("diff", {"newer": "main"}))
        assert (same["stats"], same["changes"]) == ({}, [])

        for name, words in (
            ("propose", {"query": 'query q() { insert City { name: "X" } }', "branch": "agent"}),
            ("query", {"query": 'query q() { insert City { name: "X" } }'}),
            ("branch", {"create": "agent"}),
        ):
            answer = await client.call_tool(name, words)
            assert answer.is_error or "agent" not in document(answer)["branches"]

    talk(command(place), say)
    with omnigraph.open(place, read_only=True) as graph:
        assert list(graph.branches) == ["main"]
        assert graph.count("City") == 1


def test_errors_say_what_kind_they_are_and_bounds_are_kept(place: Path) -> None:
    async def say(client: Client) -> None:
        async def refused(tool: str, **words: object) -> tuple[str, str]:
            answer = await client.call_tool(tool, words)
            assert answer.is_error
            told = document(answer)
            return told["code"], told["error"]

        code, text = await refused("query", query="query q() { match { $p: Persn } return { $p } }")
        assert code == "type_error"
        assert "did you mean `Person`?" in text
        assert (await refused("query", query=NAMES, branch="nothing"))[0] == "branch_not_found"
        assert (await refused("neighbourhood", type="Person", id="Nobody"))[0] == "entity_not_found"
        assert (await refused("search", text=" "))[0] == "bad_request"
        assert (await refused("diff", newer="nothing"))[0] == "point_not_found"
        assert (await refused("query", query=NAMES, limit=10**6))[0] == "bad_request"

        first = document(await client.call_tool("query", {"query": NAMES, "limit": 2}))
        assert (first["rows"], first["row_count"], first["is_cut"]) == ([{"name": "Ada"}, {"name": "Edsger"}], 2, True)
        # After all that it still answers.
        assert document(await client.call_tool("query", {"query": NAMES}))["row_count"] == 3

    with omnigraph.open(place, read_only=True) as graph:
        talk(create_server(graph, Permissions()), say)


def test_an_agent_proposes_on_a_branch_and_never_on_main(tmp_path: Path) -> None:
    where = tmp_path / "people"
    omnigraph.init(where, SCHEMA).close()

    async def say(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["branch", "diff", "neighbourhood", "propose", "query", "schema", "search"]
        assert tools["propose"].annotations is not None
        assert tools["propose"].annotations.read_only_hint is False
        adds = "query add($n: String) { insert Person { name: $n, age: 1 } }"
        for main in ("main", " main "):
            answer = await client.call_tool("propose", {"query": adds, "params": {"n": "Ada"}, "branch": main})
            assert answer.is_error
            assert document(answer)["code"] == "main_refused"
        reads = await client.call_tool("propose", {"query": NAMES, "branch": "idea"})
        assert reads.is_error
        assert document(await client.call_tool("branch"))["branches"] == ["main"], "no branch for what writes nothing"

        done = document(
            await client.call_tool(
                "propose", {"query": adds, "params": {"n": "Ada"}, "branch": "idea", "message": "she is missing"}
            )
        )
        assert (done["branch"], done["branch_created"], done["affected_nodes"]) == ("idea", True, 1)
        made = document(await client.call_tool("branch", {"create": "other", "source": "idea"}))
        assert made["branches"] == ["idea", "main", "other"]
        told = document(await client.call_tool("diff", {"newer": "idea"}))
        assert told["stats"] == {"node:Person": {"inserted": 1, "updated": 0, "deleted": 0}}
        [change] = told["changes"]
        assert (change["op"], change["id"], change["after"]["properties"]["age"]) == ("insert", "Ada", 1)
        await client.call_tool("propose", {"query": adds, "params": {"n": "Bob"}, "branch": "other"})
        for words, ids in (({}, ["Bob"]), ({"heads": True}, ["Bob"]), ({"older": "other", "newer": "idea"}, [])):
            found = document(await client.call_tool("diff", {"older": "idea", "newer": "other", **words}))
            assert [each["id"] for each in found["changes"]] == ids, words
        backwards = {"older": "other", "newer": "idea", "heads": True}
        assert document(await client.call_tool("diff", backwards))["changes"][0]["op"] == "delete"

    talk(command(where, "--allow-writes", "--as", "helper"), say)
    with omnigraph.open(where, read_only=True) as graph:
        assert graph.count("Person") == 0
        [newest, *_] = graph.commits.list("idea", limit=1)
        assert (newest.actor, newest.message) == ("helper", "she is missing")


def test_a_proposal_that_fails_leaves_no_branch(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "people", SCHEMA) as graph:
        graph.write(nodes={"City": [{"name": "Ulm"}]})
        tools = Tools(graph, Permissions(writes=True, actor="helper"))

        def propose(query: str, params: dict[str, object] | None = None) -> dict[str, Any]:
            return tools.propose(query, params, name=None, branch="idea", message=None)

        mistakes: list[tuple[str, dict[str, object] | None]] = [
            ('query q() { insert LivesIn { from: "Nobody", to: "Ulm" } }', None),
            ("query q($n: String) { insert City { name: $n } }", {}),
            ("query q($n: String) { insert City { name: $n } }", {"n": 7}),
        ]
        for query, params in mistakes:
            with pytest.raises(GraphError):
                propose(query, params)
            assert list(graph.branches) == ["main"]

        assert propose('query q() { insert City { name: "Bonn" } }')["branch_created"] is True
        with pytest.raises(GraphError):
            propose('query q() { insert LivesIn { from: "Nobody", to: "Bonn" } }')
        assert graph.count("City", branch="idea") == 2, "what was proposed before stays"


def test_a_failed_proposal_takes_no_branch_back_that_somebody_else_has_used(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "people", SCHEMA) as graph:
        tools = Tools(graph, Permissions(writes=True))
        with pytest.raises(ZeroDivisionError), tools._branch_for_proposal("idea"):
            graph.write(nodes={"City": [{"name": "Ulm"}]}, branch="idea")
            raise ZeroDivisionError
        assert graph.count("City", branch="idea") == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("query", {"params": {}}, "`query`: Field required"),
        ("query", {"query": NAMES, "branhc": "idea"}, "takes no argument 'branhc'; it takes query, params, name"),
        ("query", {"query": 7}, "`query`: Input should be a valid string"),
        ("query", {"query": NAMES, "params": [1]}, "`params`: Input should be a valid dictionary"),
        ("query", {"query": NAMES, "limit": "many"}, "`limit`: Input should be a valid integer"),
        ("query", {"query": NAMES, "limit": 0}, "the limit must be 1 to 1000, not 0"),
        ("query", {"query": 'query q() { insert City { name: "X" } }'}, "run it as a mutation"),
        ("schema", {"branch": "a\0b"}, "branch"),
        ("neighbourhood", {"type": "Person"}, "`id`: Field required"),
        ("neighbourhood", {"type": "Person", "id": "Ada", "depth": 99}, "depth"),
        ("neighbourhood", {"type": "Person", "id": "Ada", "limit": -1}, "limit"),
        ("neighbourhood", {"type": "Persn", "id": "Ada"}, "Persn"),
        ("search", {"text": "x", "type": "Persn"}, "there is no node type 'Persn'"),
        ("search", {"text": "x", "property": "nothing"}, "no String property fits"),
        ("diff", {"newer": "main", "types": "Person"}, "`types`: Input should be a valid list"),
        ("diff", {"newer": "main", "types": ["Persn"]}, "Persn"),
        ("branch", {"create": "idea"}, "takes no argument 'create'; it takes none"),
        ("propose", {"query": NAMES, "branch": "idea"}, "unknown tool 'propose'; use branch, diff, "),
    ],
)
def test_every_mistake_of_an_agent_is_a_typed_error_that_says_what_to_do(
    place: Path, tool: str, arguments: dict[str, Any], told: str
) -> None:
    async def say(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments)

    with omnigraph.open(place, read_only=True) as graph:
        answer = talk(create_server(graph, Permissions()), say)
    assert answer.is_error
    error = document(answer)
    assert told in error["error"]
    assert error["code"] and "pydantic" not in error["error"]


def test_a_call_that_nobody_waits_for_ends_at_the_next_step(wordy: Graph) -> None:
    class GivenUpError(Exception):
        pass

    def tools(steps: int) -> Tools:
        left = iter(range(steps))

        def still_wanted() -> None:
            if next(left, None) is None:
                raise GivenUpError

        return Tools(wordy, Permissions(writes=True), raise_if_cancelled=still_wanted)

    everything = "query q() { match { $p: Person } return { $p.name } }"
    adds = 'query q() { insert City { name: "Ulm" } }'
    with pytest.raises(GivenUpError):
        tools(5).query(everything, None, name=None, branch=None, commit=None, limit=100)
    with pytest.raises(GivenUpError):
        tools(1).search("word", type=None, property=None, misspelled=False, limit=1, branch=None)
    with pytest.raises(GivenUpError):
        tools(5).diff(wordy.commits.list("main")[-1].id, "main", types=[], limit=100)
    with pytest.raises(GivenUpError):
        tools(0).propose(adds, None, name=None, branch="idea", message=None)
    assert list(wordy.branches) == ["main"]


def test_a_call_that_its_agent_cancels_is_let_go_and_the_next_is_answered(place: Path) -> None:
    async def say(client: Client) -> None:
        with anyio.CancelScope() as waiting:
            waiting.cancel()
            await client.call_tool("query", {"query": NAMES})
        assert waiting.cancelled_caught
        assert document(await client.call_tool("query", {"query": NAMES}))["row_count"] == 3

    with omnigraph.open(place, read_only=True) as graph:
        talk(create_server(graph, Permissions()), say)


def test_main_is_written_to_only_when_told(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "people", SCHEMA)
    adds = 'query add() { insert City { name: "Ulm" } }'
    with pytest.raises(PermissionDeniedError, match="read-only from here"):
        Tools(graph, Permissions()).propose(adds, None, name=None, branch="x", message=None)
    with pytest.raises(PermissionDeniedError, match="read-only from here"):
        Tools(graph, Permissions()).start_branch("x", "main")
    Tools(graph, Permissions(writes=True, main=True)).propose(adds, None, name=None, branch="main", message=None)
    assert graph.count("City") == 1


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordy() -> Iterator[Graph]:
    """A graph whose rows are long."""
    with omnigraph.init("memory://wordy", SCHEMA) as graph:
        people = [{"name": f"p{at:03}", "about": "word " * 400} for at in range(300)]
        knows = [{"from": "p000", "to": f"p{at:03}"} for at in range(1, 300)]
        graph.write(nodes={"Person": people}, edges={"Knows": knows})
        yield graph


def test_no_answer_is_larger_than_an_answer_may_be(wordy: Graph) -> None:
    tools = Tools(wordy, Permissions())
    everything = "query q() { match { $p: Person } return { $p.name, $p.about } }"
    answers = [
        tools.query(everything, None, name=None, branch=None, commit=None, limit=limits.AGENT_ROWS_MAX),
        tools.search("word", type=None, property=None, misspelled=False, limit=300, branch=None),
        tools.neighbourhood("Person", "p000", edges=[], depth=1, limit=300, branch=None),
        tools.diff(wordy.commits.list("main")[-1].id, "main", types=[], limit=limits.AGENT_ROWS_MAX),
    ]
    for answer in answers:
        assert answer["is_cut"] is True
        assert limits.AGENT_BYTES_MAX / 3 < len(compact_json(answer).encode()) < limits.AGENT_BYTES_MAX + 1_000
    near = answers[2]
    told = {each["id"] for each in near["nodes"]}
    assert all(each["from"]["id"] in told and each["to"]["id"] in told for each in near["edges"])


def test_a_row_that_alone_is_too_large_is_refused_with_advice() -> None:
    with pytest.raises(LimitError, match="request fewer columns"):
        truncate([{"text": "x" * 50}], 9, bytes_max=40)


def test_no_more_rows_are_asked_for_than_are_shown_and_one() -> None:
    asked: list[int] = []

    def rows() -> Iterator[dict[str, int]]:
        for at in range(100):
            asked.append(at)
            yield {"at": at}

    assert truncate(rows(), 3).shown == [{"at": 0}, {"at": 1}, {"at": 2}]
    assert asked == [0, 1, 2, 3]


# --- the command ------------------------------------------------------------------------------------------------------


def test_without_the_package_the_command_says_what_to_install(place: Path) -> None:
    script = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'mcp' else real(name, *more)\n"
        f"from omnigraph.cli.main import main\nsys.exit(main(['mcp', {str(place)!r}]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "pip install 'omnigraph[mcp]'" in ended.stderr
    assert ended.stdout == ""


def test_a_graph_that_is_not_there_is_told_before_anything_is_offered(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "omnigraph.cli", "mcp", str(tmp_path / "nothing")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert "there is no graph" in ended.stderr
    assert ended.stdout == ""
