"""Making a graph and opening one."""

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
    """Make a graph with the types of a schema, and no nodes.

    Args:
        uri (str | os.PathLike[str] | ObjectStore): where: a folder, `s3://bucket/prefix`, or `memory://name` for one
            that lives as long as the process.
        schema (str): a text in the schema language.
        actor (str | None): who makes it.
        options (OpenOptions): what may be chosen.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of identifiers.

    Returns:
        Graph: open for reading and writing.

    Raises:
        ParseError: the schema text is wrong.
        AlreadyExistsError: there is a graph at `uri`; nothing of it was touched.
        InvalidRequestError: something given is of the wrong kind.
    """
    require_optional_text(actor, "the actor")
    clock = clock or SystemClock()
    ids = ids or UlidSource(clock)
    require_schema_text(schema)
    accepted = accept(schema, ids=ids)
    store = store_at(uri, options, read_only=False)
    # The schema must be there before the entry that names it; but not in a graph that is there already, which `init`
    # below refuses.
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
        uri (str | os.PathLike[str] | ObjectStore): where it is.
        read_only (bool): refuse every write, and write nothing oneself: older formats are not brought up to date and
            interrupted writes are left to others.
        options (OpenOptions): what may be chosen.
        clock (Clock | None): the source of time.
        ids (IdSource | None): the source of identifiers.

    Returns:
        Graph: open.

    Raises:
        NotFoundError: there is no graph at `uri`.
        FormatError: it is newer than this release, damaged, or was never finished.
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
        uri (str | os.PathLike[str] | ObjectStore): where it is.
        deep (bool): also compare checksums, read every value, and check the rows at the heads against the schema.
        branch (str | None): only this branch; all by default.
        quarantine (bool): put aside what cannot be read, and give damaged heads a commit that does without it.
        options (OpenOptions): what may be chosen.

    Returns:
        VerifyReport: what was found.

    Raises:
        NotFoundError: there is no such branch, or no graph.
        FormatError: it is newer than this release, or was never finished.
    """
    read_only = not quarantine
    parts = root.damaged_root(
        store_at(uri, options, read_only=read_only), read_only=read_only, settings=settings_of(options)
    )
    return verify_graph(parts, Schemas(parts), deep=deep, branch=branch, quarantine=quarantine)
