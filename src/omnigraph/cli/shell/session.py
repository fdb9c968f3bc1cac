"""What is typed at the prompt, carried out: statements on the graph, and commands that begin with a backslash."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.api.graph import Graph
from omnigraph.api.snapshot import Snapshot
from omnigraph.cli import render
from omnigraph.cli.report import report
from omnigraph.cli.shell.statement import as_query, as_typed, is_command
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError, ParseError
from omnigraph.ids import is_ulid
from omnigraph.model.schema import Schema

HEAD = "head"


@dataclass(slots=True)
class View:
    """Where the prompt looks, and how it shows what it finds.

    Attributes:
        branch: whose head is read and written.
        at: an earlier state that is read instead, as it was named; None for the head.
        point: that state, in the arguments of `Graph.snapshot`.
        timing: whether to say how long things took.
        form: how rows are shown.
        params: values of parameters.
    """

    branch: str
    at: str | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    timing: bool = False
    form: str = "table"
    params: dict[str, object] = field(default_factory=dict)


class Session:
    """A conversation with one graph."""

    def __init__(
        self,
        graph: Graph,
        *,
        branch: str,
        actor: str | None,
        say: Callable[[str], None],
        width: Callable[[], int],
        complain: Callable[[str], None] | None = None,
    ) -> None:
        """Begin a conversation.

        Args:
            graph (Graph): what it is about.
            branch (str): where to look first.
            actor (str | None): who writes.
            say (Callable[[str], None]): shows a line.
            width (Callable[[], int]): how wide the window is now.
            complain (Callable[[str], None] | None): shows an error; `say` by default.
        """
        self._graph = graph
        self._actor = actor
        self._say = say
        self._complain = complain or say
        self._width = width
        self.view = View(branch)
        self.is_over = False

    @property
    def prompt(self) -> str:
        """What stands before what is typed."""
        at = self.view.at
        return f"{self.view.branch}> " if at is None else f"{self.view.branch}@{at}> "

    @property
    def schema(self) -> Schema:
        """The types there are where the prompt looks."""
        return self._snapshot().schema

    def names(self, command: str) -> list[str]:
        """What may follow a command, for completion."""
        match command:
            case "\\branch":
                return list(self._graph.branches)
            case "\\at":
                return [HEAD, *self._graph.tags]
            case "\\format":
                return list(render.FORMATS)
            case _:
                return []

    def take(self, text: str) -> bool:
        """Carry out what was typed, and show what came of it; False where that was an error."""
        if not text.strip().removesuffix(";"):
            return True
        began = time.perf_counter()
        try:
            self._command(text.strip()) if is_command(text) else self._statement(text)
        except GraphError as error:
            if isinstance(error, ParseError) and as_query(text) != text:
                error.report = as_typed(error.report)
            self._complain(report(error, where=None))
            return False
        if self.view.timing:
            self._say(f"took {(time.perf_counter() - began) * 1e3:,.1f} ms")
        return True

    # -- statements ---------------------------------------------------------------------------------------------------

    def _statement(self, text: str) -> None:
        query, view = as_query(text), self.view
        if self._graph.prepare(query, branch=view.branch).is_mutation:
            if view.at is not None:
                raise InvalidRequestError(f"what was cannot be changed; go back with \\at {HEAD}")
            done = self._graph.mutate(query, view.params, branch=view.branch, actor=self._actor)
            self._say(f"changed {done.branch}: {done.affected_nodes} nodes, {done.affected_edges} edges")
            return
        document = self._snapshot().query(query, view.params).to_json()
        form = view.form
        columns = document.get("columns", ())
        cells = [[render.cell(row[name]) for name in columns] for row in document["rows"]]
        width = render.fitting(columns, cells, self._width())
        if form == "table" and width is None:
            form = "kv"  # too many columns for any table to fit
        for line in render.rendered(document, form, width=width or render.WIDTH):
            self._say(line)

    def _snapshot(self) -> Snapshot:
        return (
            self._graph.snapshot(**self.view.point)
            if self.view.point
            else self._graph.snapshot(branch=self.view.branch)
        )

    # -- commands -----------------------------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        command = COMMANDS.get(word)
        if command is None:
            raise InvalidRequestError(f"there is no command {word}; see \\help")
        command.run(self, rest.strip())

    def _branch(self, name: str) -> None:
        if not name:
            for each in self._graph.branches:
                self._say(f"{'*' if each == self.view.branch else ' '} {each}")
            return
        self._graph.snapshot(branch=name)
        self.view.branch, self.view.at, self.view.point = name, None, {}

    def _at(self, when: str) -> None:
        if not when:
            self._say(f"at the head of {self.view.branch}" if self.view.at is None else f"at {self.view.at}")
            return
        point: dict[str, Any] = {}
        if when != HEAD:
            point = self._point(when)
            self._graph.snapshot(**point)
        self.view.at, self.view.point = (None if when == HEAD else when), point

    def _point(self, when: str) -> dict[str, Any]:
        """A commit by its id, else a tag, else a time."""
        if is_ulid(when):
            return {"commit": when}
        if when in list(self._graph.tags):
            return {"tag": when}
        try:
            self._graph.snapshot(branch=self.view.branch, at=when)
        except InvalidRequestError:
            raise NotFoundError(
                f"there is no commit or tag '{when}', and it is no time like 2026-01-31T12:00", code="point_not_found"
            ) from None
        return {"branch": self.view.branch, "at": when}

    def _explain(self, text: str) -> None:
        if not text:
            raise InvalidRequestError("explain what? \\explain match { … } return { … }")
        for line in self._snapshot().explain(as_query(text)).splitlines():
            self._say(line)

    def _timing(self, _: str) -> None:
        self.view.timing = not self.view.timing
        self._say(f"timing is {'on' if self.view.timing else 'off'}")

    def _format(self, form: str) -> None:
        if form and form not in render.FORMATS:
            raise InvalidRequestError(f"'{form}' is no output format; there are: {', '.join(render.FORMATS)}")
        self.view.form = form or self.view.form
        self._say(f"rows are shown as {self.view.form}")

    def _set(self, text: str) -> None:
        name, _, value = text.partition(" ")
        if not name:
            for each, held in sorted(self.view.params.items()):
                self._say(f"${each} = {json.dumps(held, ensure_ascii=False)}")
            return
        try:
            self.view.params[name.removeprefix("$")] = json.loads(value)
        except ValueError:
            self.view.params[name.removeprefix("$")] = value  # a text needs no quotes

    def _types(self, _: str) -> None:
        tables = self._snapshot().record.tables
        rows = [[*key.split(":", 1), f"{pin.rows:,}"] for key, pin in sorted(tables.items(), key=_nodes_first)]
        for line in render.table(["kind", "type", "entities"], rows):
            self._say(line)

    def _schema(self, _: str) -> None:
        self._say(self._graph.schema_text(branch=self.view.branch).rstrip("\n"))

    def _help(self, _: str) -> None:
        width = max(len(each.usage) for each in COMMANDS.values())
        for each in COMMANDS.values():
            self._say(f"{each.usage:<{width}}  {each.about}")
        self._say("")
        self._say(
            "match { $p: Person } return { $p.name } limit 5    read; goes on over lines until brackets are closed"
        )
        self._say('insert Person { name: "Ada" }                      write, as one commit')

    def _quit(self, _: str) -> None:
        self.is_over = True


def _nodes_first(table: tuple[str, object]) -> tuple[bool, str]:
    return table[0].startswith("edge:"), table[0]


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of the prompt."""

    run: Callable[[Session, str], None]
    usage: str
    about: str


COMMANDS = {
    each.usage.split()[0]: each
    for each in (
        _Command(Session._branch, "\\branch [NAME]", "go to a branch, or list them"),
        _Command(Session._at, "\\at [COMMIT|TAG|TIME]", f"look at an earlier state; \\at {HEAD} to come back"),
        _Command(Session._explain, "\\explain QUERY", "how a query would be carried out"),
        _Command(Session._timing, "\\timing", "say how long things take, or stop saying it"),
        _Command(Session._format, "\\format FORMAT", f"how rows are shown: {', '.join(render.FORMATS)}"),
        _Command(Session._set, "\\set [NAME VALUE]", "the value of a parameter, as JSON or text"),
        _Command(Session._types, "\\types", "the types there are, and how many of each"),
        _Command(Session._schema, "\\schema", "the schema"),
        _Command(Session._help, "\\help", "this"),
        _Command(Session._quit, "\\quit", "leave; so does Ctrl-D"),
    )
}
