"""What a running command has: its arguments, its output streams, and the graph that it works on."""

import gc
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO, cast

from omnigraph.cli import config as configuration
from omnigraph.cli.render import WIDTH, cell, fitting_width, render_result
from omnigraph.cli.scope import Scope, resolve
from omnigraph.cli.specs import Capability, CommandSpec
from omnigraph.cli.validation import output_format, refuse_foreign_flags
from omnigraph.errors import InvalidRequestError, PermissionDeniedError

if TYPE_CHECKING:  # Lance takes seconds to import, and a command's help needs no graph
    from omnigraph.api.graph import Graph
    from omnigraph.api.snapshot import GraphReader
    from omnigraph.client.graph import RemoteGraph

# The commands that may run on Spark, which hands pandas data frames to Arrow.
_ON_SPARK = frozenset(
    {"analytics", "branch merge", "cleanup", "diff", "export", "ingest", "load", "maintain", "optimize", "prune"}
    | {"shell", "spark-sql", "sweep"}
)


class CommandContext:
    """One run of a command.

    Attributes:
        args: the parsed arguments.
        spec: the command.
        stdout: the stream of the result, for commands that write it themselves.
        stderr: the stream of everything else, such as progress.
    """

    def __init__(self, spec: CommandSpec, args: Namespace, *, out: TextIO, err: TextIO) -> None:
        self.spec = spec
        self.args = args
        self.stdout = out
        self.stderr = err
        self._remote: RemoteGraph | None = None
        refuse_foreign_flags(spec, args)

    # -- output -------------------------------------------------------------------------------------------------------

    def print(self, text: str = "") -> None:
        """Print a line of the result."""
        self.stdout.write(f"{text}\n")

    def print_json(self, document: object) -> None:
        """Print the result as one JSON document."""
        self.print(json.dumps(document, indent=2, ensure_ascii=False))

    def show(self, document: Mapping[str, object], *lines: str) -> int:
        """Print a result as JSON with `--json`, else as lines; return exit code 0."""
        if self.args.json:
            self.print_json(document)
        else:
            for line in lines:
                self.print(line)
        return 0

    def output_format(self, default: str | None = None) -> str:
        """Return the format of a query result: from the flags, else the default, else the configuration.

        Raises:
            InvalidRequestError: there is no such format.
        """
        chosen = "json" if self.args.json else self.args.format
        return output_format(chosen or default or self.config.defaults.get("output", "table"))

    def show_result(self, document: Mapping[str, Any], chosen_format: str) -> int:
        """Print the JSON document of a query result in an output format; return exit code 0."""
        defaults = self.config.defaults
        width = int(defaults.get("table_max_column_width", WIDTH))
        if chosen_format == "table" and self.stdout.isatty():
            cells = [[cell(row[name]) for name in document["columns"]] for row in document["rows"]]
            fitting = fitting_width(document["columns"], cells, get_terminal_size().columns)
            width = width if fitting is None else min(width, fitting)
        wrap = defaults.get("table_cell_layout") == "wrap"
        for line in render_result(document, chosen_format, width=width, wrap=wrap, bold=self.has_colours):
            self.print(line)
        return 0

    def note(self, text: str) -> None:
        """Print a line that is not part of the result, on stderr."""
        self.stderr.write(f"{text}\n")
        self.stderr.flush()

    @property
    def is_interactive(self) -> bool:
        """True if a person sees stderr and can answer questions."""
        return self.stderr.isatty() and sys.stdin.isatty()

    @property
    def has_colours(self) -> bool:
        """True if the result may be coloured: it goes to a terminal, and `NO_COLOR` is not set."""
        return self.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    # -- the graph ----------------------------------------------------------------------------------------------------

    @cached_property
    def config(self) -> configuration.Config:
        """The operator's configuration."""
        return configuration.read(self.note)

    @cached_property
    def scope(self) -> Scope:
        """The graph, server or cluster that the command addresses."""
        scope = resolve(self.spec, self.args, self.config)
        if scope.kind != "cluster" or self.spec.capability is Capability.CONTROL:
            return scope
        from omnigraph.cluster.access import graph_address  # noqa: PLC0415  (only for a cluster's graphs)

        return Scope("store", graph_address(scope.address, scope.graph))

    def cluster(self) -> tuple[str, str | None]:
        """Return the root of the addressed cluster, and the graph selected in it.

        Raises:
            InvalidRequestError: no cluster is addressed.
        """
        if self.args.global_cluster is not None or self.args.global_profile or os.environ.get("OMNIGRAPH_PROFILE"):
            scope = self.scope
            if scope.kind == "cluster":
                return scope.address, scope.graph
        raise InvalidRequestError(
            f"which cluster? `{self.spec.name}` needs --cluster DIR|URI, or a profile that names one",
            code="no_address",
        )

    @property
    def is_by_name(self) -> bool:
        """True if a query is named without its text, and a server is addressed that may store one of that name."""
        args = self.args
        if args.name is None or args.query is not None or args.query_string is not None:
            return False
        try:
            return self.scope.kind == "server"
        except InvalidRequestError as error:
            if error.code != "no_address":
                raise
            return False  # the missing query text is reported first

    @property
    def actor(self) -> str | None:
        """The actor of a write; on a server, the one that the server reported."""
        if self.scope.kind == "server":
            if self.args.global_as is not None:
                raise InvalidRequestError("--as does not apply to a served graph: the bearer token decides the actor")
            return None if self._remote is None else self._remote.actor
        chosen: str | None = self.args.global_as
        return chosen if chosen is not None else self.config.actor

    def storage(self) -> str:
        """Return the address of the graph's storage.

        Raises:
            InvalidRequestError: the graph is not on storage.
        """
        os.environ.setdefault("LANCE_LOG", "error")  # Lance's warnings are for its developers
        scope = self.scope
        if scope.kind != "store":
            raise InvalidRequestError(
                f"`{self.spec.name}` needs a graph on storage, and {scope.address} is a {scope.kind}"
            )
        return scope.address

    @contextmanager
    def graph(self, *, read_only: bool = True) -> "Iterator[Graph]":
        """Open the graph; a served graph has the same interface."""
        scope = self.scope
        if scope.kind == "server":
            with self.served(scope) as remote:
                yield cast("Graph", remote)  # the contract tests run both
            return
        address = self.storage()
        with _fast_imports(pandas=self.spec.name in _ON_SPARK):
            from omnigraph.api.open import open as open_graph  # noqa: PLC0415  (heavy: only for commands with a graph)

        with open_graph(address, read_only=read_only) as graph:
            yield graph

    @contextmanager
    def open_for_queries(self) -> "Iterator[Graph | GraphReader]":
        """Open the graph for queries only, which imports a small part of the package and so takes less time."""
        if self.scope.kind != "store":
            with self.graph() as graph:
                yield graph
            return
        address = self.storage()
        with _fast_imports(pandas=False):
            from omnigraph.api.open_reader import open_reader  # noqa: PLC0415  (heavy: only for commands that query)

        yield open_reader(address)

    @contextmanager
    def served(self, scope: Scope) -> "Iterator[RemoteGraph]":
        """Connect to a graph of a server, with the operator's token for that server."""
        # httpx imports click and rich for a command line of its own, which takes longer than the rest of it.
        with _fast_imports(pandas=True), _absent("click"):
            from omnigraph.client.connect import (  # noqa: PLC0415  (heavy: only for graphs on a server)
                connect,
                graphs_at,
                server_and_graph,
            )

        token = configuration.token_for(self.config, scope.address)
        if scope.graph is None and server_and_graph(scope.address)[1] is None:
            # Without the permission to list graphs, the server chooses its only graph or reports that it has several.
            with suppress(PermissionDeniedError):
                names = [graph["graph_id"] for graph in graphs_at(scope.address, token=token)]
                raise InvalidRequestError(
                    f"which graph? name one of {scope.address} with --graph: {', '.join(names) or 'it has none'}",
                    code="no_address",
                )
        with connect(scope.address, graph=scope.graph, token=token) as graph:
            self._remote = graph
            yield graph

    def echo_target(self) -> None:
        """Print the target of a write on stderr, unless `--quiet`."""
        if not self.args.global_quiet:
            self.note(f"omnigraph {self.spec.name} → {self.scope.shown} ({self.scope.access})")

    def require_consent(self) -> None:
        """Ask before a destructive write to another machine, unless `--yes`.

        Raises:
            InvalidRequestError: nobody consented.
        """
        if self.scope.is_local or self.args.global_yes:
            return
        verb, address = self.spec.name, self.scope.shown
        if self.is_interactive:
            self.stderr.write(f"{verb} {address} destroys data there. Continue? [y/N] ")
            self.stderr.flush()
            if sys.stdin.readline().strip().lower() in ("y", "yes"):
                return
        raise InvalidRequestError(
            f"refusing destructive `{verb}` against non-local target {address} without confirmation; pass --yes to "
            "confirm (an interactive TTY would be prompted instead)"
        )


@contextmanager
def _fast_imports(*, pandas: bool) -> Iterator[None]:
    """Import without garbage collection, and without pandas unless the command needs it.

    Imports create thousands of objects that stay; collecting meanwhile would visit all of them repeatedly.
    """
    was_enabled, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        if not pandas:
            _skip_pandas()
        yield
    finally:
        if len(sys.modules) > loaded:
            gc.freeze()
        if was_enabled:
            gc.enable()


def _skip_pandas() -> None:
    """Make Arrow find no pandas when it looks for it, which is once; pandas can be imported afterwards.

    Arrow imports pandas, a third of all imports of a command, only to recognise data frames among its arguments. It
    looks twice: from Cython, which takes the missing module for None, and then from C++.
    """
    if "pandas" in sys.modules:
        return
    with _absent("pandas"):
        import pyarrow as pa  # noqa: PLC0415  (heavy: only for commands with a graph)

        for _ in range(2):
            with suppress(AttributeError):
                pa.array([])


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Make `import name` fail inside, as if the module were not installed, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # documented to raise ModuleNotFoundError
    try:
        yield
    finally:
        del sys.modules[name]
