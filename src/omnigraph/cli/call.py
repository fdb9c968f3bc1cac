"""One run of a command: what was typed, the graph it is about, and where its words go."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, TextIO, cast

from omnigraph.cli import config as configuration
from omnigraph.cli.quick_imports import quick_imports
from omnigraph.cli.scope import Scope, refuse_foreign_flags, resolve
from omnigraph.cli.table import Capability, Entry
from omnigraph.errors import InvalidRequestError, PermissionDeniedError

if TYPE_CHECKING:  # Lance takes seconds to import, and a command's help needs no graph
    from omnigraph.api.graph import Graph
    from omnigraph.api.graph_queries import GraphQueries
    from omnigraph.client.graph import RemoteGraph

# The commands that may do their work on Spark.
_ON_SPARK = frozenset(
    {"analytics", "branch merge", "cleanup", "diff", "export", "ingest", "load", "maintain", "optimize", "prune"}
    | {"shell", "spark-sql", "sweep"}
)


class Call:
    """One run of a command.

    Attributes:
        args: its arguments.
        entry: which command.
    """

    def __init__(self, entry: Entry, args: Namespace, *, out: TextIO, err: TextIO) -> None:
        self.entry = entry
        self.args = args
        self._out = out
        self._err = err
        self._remote: RemoteGraph | None = None
        refuse_foreign_flags(entry, args)

    # -- words --------------------------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        """Print a line of the answer."""
        self._out.write(f"{text}\n")

    def write(self, text: str) -> None:
        """Print part of the answer as it is."""
        self._out.write(text)

    def show_json(self, document: object) -> None:
        """Print the answer as one JSON document."""
        self.say(json.dumps(document, indent=2, ensure_ascii=False))

    def note(self, text: str) -> None:
        """Say something that is not part of the answer, on stderr."""
        self._err.write(f"{text}\n")
        self._err.flush()

    @property
    def answers_to(self) -> TextIO:
        """The stream of the answer, for those who write it in their own way."""
        return self._out

    @property
    def is_interactive(self) -> bool:
        """Whether a person sees progress and can answer questions."""
        return self._err.isatty() and sys.stdin.isatty()

    @property
    def colours(self) -> bool:
        """Whether the answer may have colours: a person sees it, and did not say `NO_COLOR`."""
        return self._out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def errors_to(self) -> TextIO:
        """The stream of what is not part of the answer, for progress."""
        return self._err

    # -- the graph ----------------------------------------------------------------------------------------------------

    @cached_property
    def config(self) -> configuration.Config:
        """The operator's configuration."""
        return configuration.read(self.note)

    @cached_property
    def scope(self) -> Scope:
        """Which graph it is about."""
        found = resolve(self.entry, self.args, self.config)
        if found.kind != "cluster" or self.entry.capability is Capability.CONTROL:
            return found
        from omnigraph.cluster.access import graph_address  # noqa: PLC0415  (only for a cluster's graphs)

        return Scope("store", graph_address(found.address, found.graph))

    def cluster(self) -> tuple[str, str | None]:
        """The cluster it is about, and the graph of it that was named.

        Raises:
            InvalidRequestError: no cluster was named.
        """
        if self.args.global_cluster is not None or self.args.global_profile or os.environ.get("OMNIGRAPH_PROFILE"):
            scope = self.scope
            if scope.kind == "cluster":
                return scope.address, scope.graph
        raise InvalidRequestError(
            f"which cluster? `{self.entry.name}` needs --cluster DIR|URI, or a profile that names one",
            code="no_address",
        )

    @property
    def is_by_name(self) -> bool:
        """Whether a query was named without its text, and a server is there that may keep one of that name."""
        args = self.args
        if args.name is None or args.query is not None or args.query_string is not None:
            return False
        try:
            return self.scope.kind == "server"
        except InvalidRequestError as wrong:
            if wrong.code != "no_address":
                raise
            return False  # no graph at all: that a text is missing is said first

    @property
    def actor(self) -> str | None:
        """Who writes; on a server, who it said that was."""
        if self.scope.kind == "server":
            if self.args.global_as is not None:
                raise InvalidRequestError("--as does not apply to a served graph: the bearer token decides the actor")
            return None if self._remote is None else self._remote.actor
        chosen: str | None = self.args.global_as
        return chosen if chosen is not None else self.config.actor

    def storage(self) -> str:
        """The address of the graph's storage.

        Raises:
            InvalidRequestError: it is not addressed that way.
        """
        # Lance's warnings are for those who develop with it.
        os.environ.setdefault("LANCE_LOG", "error")
        scope = self.scope
        if scope.kind != "store":
            raise InvalidRequestError(
                f"this release reaches graphs on storage only, and {scope.address} is a {scope.kind}"
            )
        return scope.address

    @contextmanager
    def graph(self, *, read_only: bool = True) -> "Iterator[Graph]":
        """The graph, opened; or on a server, where it has the same interface."""
        scope = self.scope
        if scope.kind == "server":
            with self.served(scope) as remote:
                yield cast("Graph", remote)  # one suite of tests holds both to one interface
            return
        address = self.storage()
        # Arrow imports pandas, a third of all there is to import, only to tell its frames from other values. Work on
        # Spark may hand it such frames.
        with quick_imports(without=None if self.entry.name in _ON_SPARK else "pandas"):
            from omnigraph.api.open import open as open_graph  # noqa: PLC0415  (heavy: only for commands with a graph)

        with open_graph(address, read_only=read_only) as graph:
            yield graph

    @contextmanager
    def served(self, scope: Scope) -> "Iterator[RemoteGraph]":
        """A graph that a server has, with the token that the operator has for that server."""
        # Without the libraries of a command line of httpx's own, which take longer than httpx itself.
        with quick_imports(without="click"):
            from omnigraph.client.connect import (  # noqa: PLC0415  (heavy: only for graphs on a server)
                connect,
                graphs_at,
                server_and_graph,
            )

        token = configuration.token_for(self.config, scope.address)
        if scope.graph is None and server_and_graph(scope.address)[1] is None:
            # Who may not list them has the one graph there is, or is told that there are several.
            with suppress(PermissionDeniedError):
                found = [each["graph_id"] for each in graphs_at(scope.address, token=token)]
                raise InvalidRequestError(
                    f"which graph? name one of {scope.address} with --graph: {', '.join(found) or 'it has none'}",
                    code="no_address",
                )
        with connect(scope.address, graph=scope.graph, token=token) as graph:
            self._remote = graph
            yield graph

    @contextmanager
    def asked(self) -> "Iterator[GraphQueries]":
        """The graph, opened for queries only: a small part of all that can be done with one, and sooner there."""
        if self.scope.kind != "store":
            with self.graph() as graph:
                yield graph
            return
        address = self.storage()
        with quick_imports(without="pandas"):
            from omnigraph.api.opening import open_for_queries  # noqa: PLC0415  (heavy: only for commands that ask)

        with open_for_queries(address) as asked:
            yield asked

    def echo_target(self) -> None:
        """Say what is about to be written to."""
        if not self.args.global_quiet:
            self.note(f"omnigraph {self.entry.name} → {self.scope.shown} ({self.scope.how})")

    def consent(self) -> None:
        """Make sure that destructive work away from this machine is meant.

        Raises:
            InvalidRequestError: nobody said yes.
        """
        if self.scope.is_local or self.args.global_yes:
            return
        verb, address = self.entry.name, self.scope.shown
        if self.is_interactive:
            self._err.write(f"{verb} {address} destroys data there. Go on? [y/N] ")
            self._err.flush()
            if sys.stdin.readline().strip().lower() in ("y", "yes"):
                return
        raise InvalidRequestError(
            f"refusing destructive `{verb}` against non-local target {address} without confirmation; pass --yes to "
            "confirm (an interactive TTY would be prompted instead)"
        )

    def show(self, document: Mapping[str, object], *lines: str) -> int:
        """Print an answer as JSON where that was asked for, else as lines for people."""
        if self.args.json:
            self.show_json(document)
        else:
            for line in lines:
                self.say(line)
        return 0
