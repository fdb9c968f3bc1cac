"""Execute the input of the shell: statements on the graph, and commands that begin with a backslash."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.api.graph import Graph
from omnigraph.api.snapshot import Snapshot
from omnigraph.cli import render
from omnigraph.cli.report import report
from omnigraph.cli.shell.statement import as_query, is_command, with_typed_lines
from omnigraph.cli.validation import output_format
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError, ParseError
from omnigraph.ids import is_ulid
from omnigraph.model.schema import Schema

HEAD = "head"


@dataclass(slots=True)
class View:
    """The state that the shell reads, and the settings of its output.

    Attributes:
        branch: the branch that is read and written.
        at: the name of an earlier state that is read instead; None for the head.
        point: that state, in the keywords of `Graph.snapshot`.
        timing: whether to print the duration of statements.
        output_format: the format of rows.
        params: values of query parameters.
    """

    branch: str
    at: str | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    timing: bool = False
    output_format: str = "table"
    params: dict[str, object] = field(default_factory=dict)


class Session:
    """One run of the shell on one graph."""

    def __init__(
        self,
        graph: Graph,
        *,
        branch: str,
        actor: str | None,
        print_line: Callable[[str], None],
        width: Callable[[], int],
        print_error: Callable[[str], None] | None = None,
    ) -> None:
        """Start a session.

        Args:
            graph: the graph.
            branch: the branch to start on.
            actor: the actor of writes.
            print_line: prints a line of output.
            width: returns the current width of the window.
            print_error: prints an error; `print_line` by default.
        """
        self._graph = graph
        self._actor = actor
        self._print = print_line
        self._print_error = print_error or print_line
        self._width = width
        self.view = View(branch)
        self.is_over = False

    @property
    def prompt(self) -> str:
        """The prompt text."""
        at = self.view.at
        return f"{self.view.branch}> " if at is None else f"{self.view.branch}@{at}> "

    @property
    def schema(self) -> Schema:
        """The schema of the current state."""
        return self._snapshot().schema

    def argument_names(self, command: str) -> list[str]:
        """Return the possible arguments of a command, for completion."""
        match command:
            case "\\branch":
                return list(self._graph.branches)
            case "\\at":
                return [HEAD, *self._graph.tags]
            case "\\format":
                return list(render.FORMATS)
            case _:
                return []

    def execute(self, text: str) -> bool:
        """Execute a statement or command and print its result; False if that was an error."""
        if not text.strip().removesuffix(";"):
            return True
        began = time.perf_counter()
        try:
            self._command(text.strip()) if is_command(text) else self._statement(text)
        except GraphError as error:
            if isinstance(error, ParseError) and as_query(text) != text:
                error.report = with_typed_lines(error.report)
            self._print_error(report(error, where=None))
            return False
        if self.view.timing:
            self._print(f"took {(time.perf_counter() - began) * 1e3:,.1f} ms")
        return True

    # -- statements ---------------------------------------------------------------------------------------------------

    def _statement(self, text: str) -> None:
        query, view = as_query(text), self.view
        if self._graph.prepare(query, branch=view.branch).is_mutation:
            if view.at is not None:
                raise InvalidRequestError(f"an earlier state cannot be changed; return to the head with \\at {HEAD}")
            result = self._graph.mutate(query, view.params, branch=view.branch, actor=self._actor)
            self._print(f"changed {result.branch}: {result.affected_nodes} nodes, {result.affected_edges} edges")
            return
        document = self._snapshot().query(query, view.params).to_json()
        chosen = view.output_format
        columns = document.get("columns", ())
        cells = [[render.cell(row[name]) for name in columns] for row in document["rows"]]
        width = render.fitting_width(columns, cells, self._width())
        if chosen == "table" and width is None:
            chosen = "kv"  # too many columns for a table
        for line in render.render_result(document, chosen, width=width or render.WIDTH):
            self._print(line)

    def _snapshot(self) -> Snapshot:
        return (
            self._graph.snapshot(**self.view.point)
            if self.view.point
            else self._graph.snapshot(branch=self.view.branch)
        )

    # -- commands -----------------------------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            raise InvalidRequestError(f"unknown command {name}; see \\help")
        command.run(self, argument.strip())

    def _branch(self, name: str) -> None:
        if not name:
            for branch in self._graph.branches:
                self._print(f"{'*' if branch == self.view.branch else ' '} {branch}")
            return
        self._graph.snapshot(branch=name)
        self.view.branch, self.view.at, self.view.point = name, None, {}

    def _at(self, state: str) -> None:
        if not state:
            self._print(f"at the head of {self.view.branch}" if self.view.at is None else f"at {self.view.at}")
            return
        point: dict[str, Any] = {}
        if state != HEAD:
            point = self._point(state)
            self._graph.snapshot(**point)
        self.view.at, self.view.point = (None if state == HEAD else state), point

    def _point(self, state: str) -> dict[str, Any]:
        """Resolve the name of a state: a commit id, else a tag, else a time."""
        if is_ulid(state):
            return {"commit": state}
        if state in list(self._graph.tags):
            return {"tag": state}
        try:
            self._graph.snapshot(branch=self.view.branch, at=state)
        except InvalidRequestError:
            raise NotFoundError(
                f"'{state}' is not a commit, a tag, or a time like 2026-01-31T12:00", code="point_not_found"
            ) from None
        return {"branch": self.view.branch, "at": state}

    def _explain(self, text: str) -> None:
        if not text:
            raise InvalidRequestError("\\explain needs a query: \\explain match { … } return { … }")
        for line in self._snapshot().explain(as_query(text)).splitlines():
            self._print(line)

    def _timing(self, _: str) -> None:
        self.view.timing = not self.view.timing
        self._print(f"timing is {'on' if self.view.timing else 'off'}")

    def _format(self, chosen: str) -> None:
        if chosen:
            self.view.output_format = output_format(chosen)
        self._print(f"rows are printed as {self.view.output_format}")

    def _set(self, text: str) -> None:
        name, _, value = text.partition(" ")
        if not name:
            for param, current in sorted(self.view.params.items()):
                self._print(f"${param} = {json.dumps(current, ensure_ascii=False)}")
            return
        try:
            self.view.params[name.removeprefix("$")] = json.loads(value)
        except ValueError:
            self.view.params[name.removeprefix("$")] = value  # text without quotes

    def _types(self, _: str) -> None:
        tables = self._snapshot().record.tables
        rows = [[*key.split(":", 1), f"{pin.rows:,}"] for key, pin in sorted(tables.items(), key=_nodes_first)]
        for line in render.table(["kind", "type", "entities"], rows):
            self._print(line)

    def _schema(self, _: str) -> None:
        self._print(self._graph.schema_text(branch=self.view.branch).rstrip("\n"))

    def _help(self, _: str) -> None:
        width = max(len(command.usage) for command in COMMANDS.values())
        for command in COMMANDS.values():
            self._print(f"{command.usage:<{width}}  {command.summary}")
        self._print("")
        self._print(
            "match { $p: Person } return { $p.name } limit 5    read; continues over lines until brackets are closed"
        )
        self._print('insert Person { name: "Ada" }                      write, as one commit')

    def _quit(self, _: str) -> None:
        self.is_over = True


def _nodes_first(table: tuple[str, object]) -> tuple[bool, str]:
    return table[0].startswith("edge:"), table[0]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command of the shell."""

    run: Callable[[Session, str], None]
    usage: str
    summary: str


COMMANDS = {
    command.usage.split()[0]: command
    for command in (
        ShellCommand(Session._branch, "\\branch [NAME]", "switch to a branch, or list them"),
        ShellCommand(Session._at, "\\at [COMMIT|TAG|TIME]", f"read an earlier state; \\at {HEAD} to return"),
        ShellCommand(Session._explain, "\\explain QUERY", "show the plan of a query"),
        ShellCommand(Session._timing, "\\timing", "print the duration of statements, on or off"),
        ShellCommand(Session._format, "\\format FORMAT", f"set the format of rows: {', '.join(render.FORMATS)}"),
        ShellCommand(Session._set, "\\set [NAME VALUE]", "set a query parameter, as JSON or text"),
        ShellCommand(Session._types, "\\types", "list the types with their entity counts"),
        ShellCommand(Session._schema, "\\schema", "show the schema"),
        ShellCommand(Session._help, "\\help", "show this help"),
        ShellCommand(Session._quit, "\\quit", "leave, like Ctrl-D"),
    )
}
