"""Create and open graphs."""

import os

from omnigraph.api.graph import Graph
from omnigraph.api.open_reader import settings_of, store_at
from omnigraph.api.options import OpenOptions
from omnigraph.api.schemas import Schemas
from omnigraph.api.verify import VerifyReport, verify_graph
from omnigraph.clock import Clock, SystemClock
from omnigraph.ids import IdSource, UlidSource
from omnigraph.language.schema import accept
from omnigraph.model.commit import MAIN
from omnigraph.storage.layout import table_schemas
from omnigraph.storage.object_store import ObjectStore
from omnigraph.transaction import root
from omnigraph.transaction.log import Log
from omnigraph.transaction.schema_files import store_schema
from omnigraph.transaction.validation import require_optional_text, require_schema_text

_DEFAULTS = OpenOptions()


def init(
    uri: "str | os.PathLike[str] | ObjectStore",
    schema: str,
    *,
    actor: str | None = None,
    options: OpenOptions = _DEFAULTS,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Graph:
    """Create a graph with the types of a schema, and no nodes.

    Args:
        uri (str | os.PathLike[str] | ObjectStore): a folder, `s3://bucket/prefix`, or `memory://name` for a
            graph that lives as long as the process.
        schema (str): a text in the schema language.
        actor (str | None): recorded as the author of the first commit.
        options (OpenOptions): durability, storage, caches and others.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of identifiers.

    Returns:
        Graph: open for reading and writing.

    Raises:
        ParseError: the schema is not valid.
        AlreadyExistsError: there is a graph at `uri`; it was not changed.
        InvalidRequestError: an argument has the wrong type.
    """
    require_optional_text(actor, "the actor")
    clock = clock or SystemClock()
    ids = ids or UlidSource(clock)
    require_schema_text(schema)
    accepted = accept(schema, ids=ids)
    store = store_at(uri, options, read_only=False)
    # The schema must be stored before the log entry that refers to it, but not into a graph that already exists, which
    # `init` below refuses.
    is_new = Log(store, clock=clock).head(MAIN) is None
    digest = store_schema(store, schema, accepted) if is_new else ""
    parts = root.init(
        store,
        table_schemas(accepted),
        schema=digest,
        settings=settings_of(options),
        actor=actor,
        clock=clock,
        ids=ids,
    )
    return Graph(parts, Schemas(parts), cache_bytes=options.cache_bytes)


def open(
    uri: "str | os.PathLike[str] | ObjectStore",
    *,
    read_only: bool = False,
    options: OpenOptions = _DEFAULTS,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Graph:
    """Open a graph.

    Args:
        uri (str | os.PathLike[str] | ObjectStore): a folder, `s3://bucket/prefix` or `memory://name`.
        read_only (bool): refuse every write; older formats are not migrated, and interrupted writes not recovered.
        options (OpenOptions): durability, storage, caches and others.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of identifiers.

    Returns:
        Graph: close it to wait for its background threads.

    Raises:
        NotFoundError: there is no graph at `uri`.
        FormatError: its format is newer than this release, it is damaged, or its creation was interrupted.
    """
    parts = root.open_root(
        store_at(uri, options, read_only=read_only),
        read_only=read_only,
        settings=settings_of(options),
        clock=clock,
        ids=ids,
    )
    return Graph(parts, Schemas(parts), cache_bytes=options.cache_bytes)


def verify(
    uri: "str | os.PathLike[str] | ObjectStore",
    *,
    deep: bool = False,
    branch: str | None = None,
    quarantine: bool = False,
    options: OpenOptions = _DEFAULTS,
) -> VerifyReport:
    """Check a graph that may be too damaged to be opened; see `Graph.verify`.

    Args:
        uri (str | os.PathLike[str] | ObjectStore): a folder, `s3://bucket/prefix` or `memory://name`.
        deep (bool): also compare checksums, read every value, and check the rows at the heads against the schema.
        branch (str | None): only this branch; all by default.
        quarantine (bool): move unreadable files aside, and commit a readable state on each damaged branch.
        options (OpenOptions): durability, storage, caches and others.

    Returns:
        VerifyReport: the findings, and what was checked.

    Raises:
        NotFoundError: there is no such branch, or no graph.
        FormatError: its format is newer than this release, or its creation was interrupted.
    """
    read_only = not quarantine
    parts = root.damaged_root(
        store_at(uri, options, read_only=read_only), read_only=read_only, settings=settings_of(options)
    )
    return verify_graph(parts, Schemas(parts), deep=deep, branch=branch, quarantine=quarantine)
