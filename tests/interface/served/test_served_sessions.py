"""The sessions of the command line, played against a server: the same words, the same answers.

What is typed about a graph on storage is typed about the same graph on a server, and what appears must be what the
session says, but for how the graph is addressed, and files that a server does not see. Who writes, a server knows from
the token, so that whoever is `--as ann` in a session comes with the token of ann.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import command_line
from tests.support.command_line import Ended
from tests.support.sessions import Session

from omnigraph.cli.specs import BY_NAME, Capability, CommandSpec
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import load_tokens

GOLDEN = Path(__file__).parents[1] / "cli" / "golden"
SESSIONS = ("1-first", "2-branches", "3-history", "4-schema", "8-blobs")
# What a server does not do, and the storage does beside it while it runs: files with columns, Spark, bad records put
# aside, other formats than lines. The last asks a store for a query by name, which only servers keep.
AT_THE_STORAGE = (
    "load g --type Author --data people.csv",
    "load g --data people.csv",
    "load g --data peple.csv",
    "load g --data books.jsonl --mode append --engine local --master",
    "load g --data bad.jsonl --mode append --engine local --quiet --rejects",
    "export g --type Author --format csv",
    "query books_of --store g\n",
)
# A server of many always knows who writes; a session does not, where it does not say `--as`.
SOMEBODY = "somebody"
TOKENS = {actor: f"token-of-{actor}" for actor in ("ann", "bob", SOMEBODY)}
POLICY = """\
version: 1
groups: { all: [ann, bob, somebody] }
rules:
  - id: data
    allow: { actors: { group: all }, actions: [read, export, change], branch_scope: any }
  - id: lines
    allow:
      actors: { group: all }
      actions: [schema_apply, branch_create, branch_delete, branch_merge]
      target_branch_scope: any
"""
_NOBODY = (
    (re.compile(rf"^(! )?actor(_id)?: {SOMEBODY}\n", re.MULTILINE), ""),
    (re.compile(rf'"(actor|actor_id)": "{SOMEBODY}"'), r'"\1": null'),
    (re.compile(rf" actor={SOMEBODY}"), ""),
)
_FILES = (
    (re.compile(r" of \w+\.jsonl\)"), ")"),
    (re.compile(r" \(in \w+\.jsonl\)"), ""),
)


class ServedRun:
    """Runs the program with its graph on a server, and tells what it said as if that were on storage."""

    def __init__(self, serve: Callable[[ServerSettings], str], folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._serve = serve
        self._patch = patch
        self._folder = folder
        self._urls: dict[str, str] = {}
        self.served: set[str] = set()

    def __call__(self, *words: str) -> Ended:
        """Run it."""
        spec = _spec(words)
        graph = next((each for each in words if each in self._urls), None)
        as_typed = f"{' '.join(words)}\n"
        if spec.name == "init":
            ended = command_line.run(*words)
            if ended.code == 0:
                (self._folder / "policy.yaml").write_text(POLICY)
                settings = ServerSettings(
                    store=str(self._folder / words[1]),
                    policy=str(self._folder / "policy.yaml"),
                    tokens=load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}),
                )
                self._urls[words[1]] = self._serve(settings)
            return ended
        if graph is None or spec.capability is not Capability.ANY or as_typed.startswith(AT_THE_STORAGE):
            return command_line.run(*words)
        self.served.add(spec.name)
        url = self._urls[graph]
        actor = words[words.index("--as") + 1] if "--as" in words else SOMEBODY
        self._patch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKENS[actor])
        return _as_stored(command_line.run(*_to_server(words, spec, graph, url)), graph, url, self._folder)


def _spec(words: tuple[str, ...]) -> CommandSpec:
    return BY_NAME.get(" ".join(words[:2])) or BY_NAME[words[0]]


def _to_server(words: tuple[str, ...], spec: CommandSpec, graph: str, url: str) -> list[str]:
    """The same words about the same graph, addressed on its server."""
    kept: list[str] = []
    for word in words:
        if word == graph:
            if kept[-1] in ("--store", "--uri"):
                kept.pop()
        elif kept and kept[-1] == "--as":
            kept.pop()  # told by the token
        else:
            kept.append(word)
    consent = ["--yes"] if spec.name == "branch delete" else []
    return [*kept, "--server", url, "--graph", graph, *consent]


def _as_stored(ended: Ended, graph: str, url: str, folder: Path) -> Ended:
    """What was said, with the address a graph on storage has."""

    def told(text: str) -> str:
        text = text.replace(f"{url}/graphs/{graph}", str(folder / graph))
        return text.replace(f"→ {url} (served)", f"→ {graph} (direct, local)").replace(url, graph)

    return Ended(ended.code, told(ended.out), told(ended.err))


def _without(text: str, patterns: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    for pattern, stands in patterns:
        text = pattern.sub(stands, text)
    return text


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_goes_the_same_on_a_server(
    name: str,
    serve: Callable[[ServerSettings], str],
    operator_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in (GOLDEN / "files").iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    run = ServedRun(serve, tmp_path, monkeypatch)
    expected = (GOLDEN / f"{name}.txt").read_text()

    found = Session(run, tmp_path, monkeypatch).played(expected)

    assert run.served, "something was asked of the server"
    assert _without(found, _NOBODY) == _without(expected, _FILES)


def test_every_command_that_takes_a_server_is_in_some_session() -> None:
    typed = "\n".join((GOLDEN / f"{name}.txt").read_text() for name in SESSIONS)
    missing = [
        spec.name
        for spec in BY_NAME.values()
        if spec.capability is Capability.ANY and f"$ omnigraph {spec.name} " not in typed and spec.name != "mcp"
    ]
    assert missing == []
