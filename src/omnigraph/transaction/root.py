"""A graph's root: making one, opening one, and bringing an older one up to date.

The stamp claims the root, the first entry of `main` makes the graph. An init that died between the two is finished by
the next init; `open` says so.
"""

import atexit
import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import AlreadyExistsError, FormatError, GraphError, NotFoundError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.ids import IdSource, UlidSource
from omnigraph.model.commit import MAIN, CommitKind, Pin, Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.open import open_store, table_options
from omnigraph.storage.records.read import FORMAT, Stamp, read_stamp, stamp_bytes
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.intent import Intents
from omnigraph.transaction.log import Done, Log
from omnigraph.transaction.recovery import heal

_memory_folders: dict[str, tempfile.TemporaryDirectory[str]] = {}
_memory_lock = threading.Lock()


def init(
    uri: str | ObjectStore,
    tables: Mapping[str, pa.Schema],
    *,
    schema: str = "",
    settings: Settings | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> GraphContext:
    """Make a graph with an empty table per type key (`node:Person`); nothing is touched where there is one."""
    context = _context(uri, settings=settings, read_only=False, clock=clock, ids=ids)
    context.log.store_clock.ask()
    stamp = _claimed(context)
    _check_fence(context, stamp)
    context.log.expect(stamp.graph)
    reached(Failpoint.INIT_STAMP_PUT)
    if context.log.head(MAIN) is not None:
        raise AlreadyExistsError(
            f"there is a graph at {context.store.uri} already (graph {stamp.graph})", code="already_initialized"
        )
    created = {key: create_table(context, key, columns) for key, columns in sorted(tables.items())}
    context.store.make_durable([f"{pin.table}/" for pin in created.values()])
    reached(Failpoint.INIT_TABLES_CREATED)
    first = Record(
        commit=context.ids.new(),
        branch=MAIN,
        number=1,
        kind=CommitKind.INIT,
        parent=None,
        schema=schema,
        tables=created,
        created_at_us=context.clock.now_us(),
        actor=actor,
        footprint=Footprint({key: TypeFootprint(writes_whole=True) for key in created}),
    )
    if not isinstance(context.log.put(first, after=None), Done):
        raise AlreadyExistsError(f"a graph was made at {context.store.uri} meanwhile", code="already_initialized")
    context.log.confirm_root()  # of two that claimed it under different names, one has it
    reached(Failpoint.INIT_ENTRY_PUT)
    return _as_stamped(context, stamp)


def open_root(
    uri: str | ObjectStore,
    *,
    read_only: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> GraphContext:
    """Open a graph; read-write opens also migrate an older format and heal interrupted writes."""
    context = _context(uri, settings=settings, read_only=read_only, clock=clock, ids=ids)
    seen = context.store.identity(paths.STAMP)
    stamp = _stamp_of(context.store)
    context = _as_stamped(context, stamp)
    context.log.expect(stamp.graph, seen)
    if context.log.head(MAIN) is None:
        raise _unfinished(context.store)
    if read_only:
        return context
    _check_fence(context, stamp)
    context.log.store_clock.ask()
    migrated = migrate(context, stamp)
    if migrated != stamp:
        context = _as_stamped(context, migrated)
        context.log.expect(migrated.graph)
    heal(context)
    return context


def damaged_root(
    uri: str | ObjectStore, *, read_only: bool = False, settings: Settings | None = None, clock: Clock | None = None
) -> GraphContext:
    """A graph whose logs may be past reading: nothing is read, healed or brought up to date. For verification."""
    context = _context(uri, settings=settings, read_only=read_only, clock=clock, ids=None)
    if not context.log.branch_names():
        _stamp_of(context.store)
        raise _unfinished(context.store)
    with suppress(GraphError):
        context.log.expect(_stamp_of(context.store).graph)
    return context


def _stamp_of(store: ObjectStore) -> Stamp:
    try:
        return read_stamp(store.get(paths.STAMP), path=paths.absolute(store, paths.STAMP))
    except ObjectNotFound:
        raise NotFoundError(
            f"there is no graph at {store.uri}; make one with init, or look for a misspelled address",
            code="graph_not_found",
        ) from None


def _unfinished(store: ObjectStore) -> FormatError:
    return FormatError(
        f"the graph at {store.uri} was never finished: its stamp is there, but '{MAIN}' has no entry; "
        "run init there again",
        code="init_unfinished",
    )


def _as_stamped(context: GraphContext, stamp: Stamp) -> GraphContext:
    """The context of the graph that a stamp names, with the settings in which all its processes agree.

    A process may promise more than the stamp, never less: "power" holds where either says so.
    """
    settings = context.settings
    if stamp.durability == Durability.POWER and settings.durability != Durability.POWER:
        settings = replace(settings, durability=stamp.durability)
        context.store.sync_always()
    if settings.log_cut_s is None:
        settings = replace(settings, log_cut_s=stamp.log_cut_s)
    return replace(context, graph=stamp.graph, ends_announced=stamp.ends_announced, settings=settings)


def _check_fence(context: GraphContext, stamp: Stamp) -> None:
    """Writers that decide their races in different places would each win them all."""
    external = context.store.is_fenced_outside
    if stamp.fenced_externally and not external:
        raise FormatError(
            f"the writers of the graph at {context.store.uri} agree through an external store; name "
            "its address to write",
            code="fence_mismatch",
        )
    if external and not stamp.fenced_externally:
        raise FormatError(
            f"the writers of the graph at {context.store.uri} agree through the object store itself; "
            "open it without an external store",
            code="fence_mismatch",
        )
    if stamp.fence_id and context.store.fence_id() != stamp.fence_id:
        raise FormatError(
            f"the writers of the graph at {context.store.uri} agree through another external store than the one named "
            f"here (that one has the id {stamp.fence_id}); name its address to write",
            code="fence_mismatch",
        )


def create_table(context: GraphContext, type_key: str, columns: pa.Schema) -> Pin:
    """A fresh, empty table for one type lifetime; part of nothing until a commit names it."""
    kind, _, _ = type_key.partition(":")
    folder = paths.EDGES if kind == "edge" else paths.NODES
    return context.tables.create(f"{folder}{context.ids.new()}", columns)


def _claimed(context: GraphContext) -> Stamp:
    """The stamp of the root, ours or another's."""
    stamp = Stamp(
        FORMAT,
        context.ids.new(),
        fenced_externally=context.store.is_fenced_outside,
        ends_announced=True,
        fence_id=context.store.fence_id() or "",
        durability=context.settings.durability,
        log_cut_s=context.log_cut_s,
    )
    body = put_or_read(context.store, paths.STAMP, stamp_bytes(stamp), clock=context.clock)
    return read_stamp(body, path=paths.absolute(context.store, paths.STAMP))


def _context(
    uri: str | ObjectStore, *, settings: Settings | None, read_only: bool, clock: Clock | None, ids: IdSource | None
) -> GraphContext:
    settings = settings or Settings()
    clock = clock or SystemClock()
    ids = ids or UlidSource(clock)
    store = uri
    if isinstance(store, str):
        store = open_store(store, read_only=read_only, durability=settings.durability, external=settings.external)
    tables_uri = _tables_uri(store.uri)
    return GraphContext(
        store=store,
        table_files=store if tables_uri == store.uri else LocalStore(tables_uri, durability=Durability.PROCESS),
        tables=Tables(tables_uri, storage_options=table_options(store)),
        log=Log(store, clock=clock),
        intents=Intents(store, clock=clock, ids=ids, heartbeat_s=settings.heartbeat_s, stale_s=settings.stale_s),
        clock=clock,
        ids=ids,
        settings=settings,
        read_only=read_only,
    )


def _tables_uri(store_uri: str) -> str:
    """Where the tables are: beside the log; those of a graph in memory lie in a folder of this process's own."""
    if not store_uri.startswith("memory:"):
        return store_uri
    with _memory_lock:
        folder = _memory_folders.get(store_uri)
        if folder is None:
            folder = tempfile.TemporaryDirectory(prefix="omnigraph-", ignore_cleanup_errors=True)
            _memory_folders[store_uri] = folder
            # Said aloud: what is cleaned up silently at the end of a process is warned of.
            atexit.register(folder.cleanup)
        return folder.name


# From the format it starts with: makes the new stamp. The choice it needs is settled on the store.
_Step = Callable[[ObjectStore, Stamp, IdSource, Clock], Stamp]


def migrate(context: GraphContext, stamp: Stamp) -> Stamp:
    """Carry out every step from the graph's format to today's; returns the stamp it then has.

    Of several processes that open the graph at once, one put-if-absent decides each step. Carrying it out twice changes
    nothing, so the next open finishes what a crash interrupted. Old bytes are never destroyed.

    What a stamp says of all writers since format 2 are the settings of the first one.
    """
    while stamp.format < FORMAT:
        stamp = STEPS[stamp.format](context.store, stamp, context.ids, context.clock)
        if stamp.format == FORMAT:
            stamp = replace(stamp, durability=context.settings.durability, log_cut_s=context.log_cut_s)
        context.store.put(paths.STAMP, stamp_bytes(stamp))
    return stamp


def _name_the_graph(store: ObjectStore, stamp: Stamp, ids: IdSource, clock: Clock) -> Stamp:
    """0 to 1: a graph gets an id of its own, which change cursors and caches are bound to."""
    path = f"{paths.MIGRATIONS}1.json"
    choice = put_or_read(store, path, json.dumps({"graph": ids.new()}).encode(), clock=clock)
    try:
        graph = json.loads(choice)["graph"]
    except (ValueError, KeyError, TypeError) as fault:
        where = paths.absolute(store, path)
        raise FormatError(f"the note of the migration {where} is damaged: {fault}", path=where) from fault
    return replace(stamp, format=1, graph=graph)


def _chain_the_log(store: ObjectStore, stamp: Stamp, _ids: IdSource, _clock: Clock) -> Stamp:
    """1 to 2: entries name their graph and the entry before them, and the stamp names the fence of its writers."""
    return replace(stamp, format=2, fence_id=store.fence_id() or "")


STEPS: Mapping[int, _Step] = {0: _name_the_graph, 1: _chain_the_log}
