"""Load files into a branch as one commit, in this process or on Spark."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Protocol, TypeGuard

from omnigraph.api.load_options import LOCAL, SPARK, LoadOptions
from omnigraph.api.results import LoadResult
from omnigraph.api.schemas import Schemas
from omnigraph.branch import branches
from omnigraph.errors import GraphError, InternalError, InvalidRequestError, NotFoundError, OutcomeUnknownError
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.pipeline.load.how_far import LoadProgress, ignore_progress
from omnigraph.pipeline.load.local import LocalLoad
from omnigraph.pipeline.load.reading import Reading
from omnigraph.pipeline.load.rejects import RejectsFile
from omnigraph.pipeline.load.request import FrameToLoad, Loaded, LoadRequest, TooManyRejectsError, columns_of
from omnigraph.pipeline.load.sources import OPTION, sources_of
from omnigraph.storage import paths
from omnigraph.transaction import idempotency
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import Operation, Receipt, write
from omnigraph.transaction.write_set import WriteSet

_SESSION = "omnigraph.pipeline.session"


class _Load(Protocol):
    """A load whose files can be read."""

    loaded: Loaded

    @property
    def operation(self) -> Operation: ...

    def run(self, staging: WriteSet) -> None: ...


def load(
    parts: GraphContext, schemas: Schemas, data: object, options: LoadOptions, write_options: WriteOptions
) -> LoadResult:
    """Load files as one commit, or leave no trace; see `Graph.load`."""
    _validate(options)
    branch = paths.branch_name(options.branch)
    if not options.dry_run:
        parts.refuse_read_only()
    start, missing = _start(parts, branch, options.from_branch)
    if not missing and write_options.idempotency_key is not None and not options.dry_run:
        # The write checks this too; here it saves the work of the load.
        earlier = idempotency.earlier_use(parts, branch, write_options.idempotency_key, parts.log.live_head(branch))
        if earlier is not None:
            return _result(parts, options, Loaded(), Receipt(earlier, earlier, replayed=True), created=False)
    frames = data if _are_frames(data) else ()
    sources = () if frames else sources_of(data, format=options.format, strict=options.strict)
    rejects_file = None if options.rejects is None else RejectsFile(options.rejects, parts.ids.new())

    def request_for(accepted: Accepted) -> LoadRequest:
        columns = (
            None
            if frames
            else columns_of(
                accepted.schema,
                sources,
                type_name=options.type_name,
                edge=options.edge,
                from_column=options.from_column,
                to_column=options.to_column,
            )
        )
        return LoadRequest(
            sources,
            options.mode,
            columns,
            frames,
            keeps_rejects=options.rejects is not None,
            max_rejects=options.max_rejects,
            watch=options.progress or ignore_progress,
        )

    def load_with(accepted: Accepted) -> tuple[Loaded, Receipt | None, bool]:
        with _opened(parts, accepted, request_for(accepted), options, start=start, actor=write_options.actor) as opened:

            def run(staging: WriteSet) -> None:
                opened.run(staging)
                if rejects_file is not None:
                    rejects_file.write(opened.loaded.rejects)

            if options.dry_run:
                run(WriteSet(parts.snapshot(parts.log.live_head(start))))
                return opened.loaded, None, False
            with _created_branch(parts, branch, start if missing else None, write_options.actor) as created:
                receipt = write(parts, branch, replace(opened.operation, run=run), write_options)
            return opened.loaded, receipt, created

    try:
        work = (
            schemas.under_the_branch_schema
            if options.engine == LOCAL
            else interruptible(schemas.under_the_branch_schema)
        )
        loaded, receipt, created = work(start, load_with)
    except TooManyRejectsError as error:
        if rejects_file is not None:
            rejects_file.write(error.rejects)
        raise
    except OutcomeUnknownError:
        raise  # the commit may exist: the file of rejects stays
    except Exception:  # nothing was loaded, so a file of rejects would be misleading
        if rejects_file is not None:
            rejects_file.discard()
        raise
    return _result(parts, options, loaded, receipt, created=created, rejects_file=rejects_file)


def _are_frames(data: object) -> TypeGuard[tuple[FrameToLoad, ...]]:
    return isinstance(data, tuple) and bool(data) and all(isinstance(frame, FrameToLoad) for frame in data)


@contextmanager
def _opened(
    parts: GraphContext,
    accepted: Accepted,
    request: LoadRequest,
    options: LoadOptions,
    *,
    start: str,
    actor: str | None,
) -> Iterator[_Load]:
    reading = Reading(
        accepted,
        parts.ids.new(),
        request.columns,
        external_blobs=parts.settings.external_blobs,
        keeps_references=request.mode is Mode.OVERWRITE,
    )
    if options.engine == LOCAL:
        yield LocalLoad(accepted, request, reading)
        return
    session = sys.modules.get(_SESSION)
    if session is None or session.active_session() is None:
        request.watch(LoadProgress("starting Spark"))
    # Imported here because Spark is slow to import.
    spark = import_module("omnigraph.pipeline.load.spark")
    with spark.spark_load(
        parts,
        accepted,
        request,
        reading,
        branch=start,
        actor=actor,
        writes=not options.dry_run,
        spark=options.spark,
    ) as opened:
        yield opened


def _validate(options: LoadOptions) -> None:
    """Refuse options that are wrong, or would have no effect."""
    if options.engine not in (SPARK, LOCAL):
        raise _wrong(f"unknown engine '{options.engine}'; one of {SPARK}, {LOCAL}")
    if options.engine == LOCAL and options.spark is not None:
        raise _wrong("the local engine does not use Spark; leave out the Spark settings")
    if options.progress is not None and not callable(options.progress):
        raise _wrong(f"progress must be a function, not {type(options.progress).__name__}")
    most = options.max_rejects
    if most is None:
        return
    if options.rejects is None:
        raise _wrong("max_rejects needs a folder for the rejected records; name it with rejects")
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise _wrong(f"max_rejects must be 0 or more, not {most!r}")


def _wrong(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code=OPTION)


def _start(parts: GraphContext, branch: str, from_branch: str | None) -> tuple[str, bool]:
    """Return the branch that the load starts from, and whether the target branch must be created."""
    if branches.exists(parts, branch):
        return branch, False
    if from_branch is None:
        raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
    start = paths.branch_name(from_branch)
    if not branches.exists(parts, start):
        raise NotFoundError(f"branch '{start}' not found", code="branch_not_found", branch=start)
    return start, True


@contextmanager
def _created_branch(parts: GraphContext, branch: str, start: str | None, actor: str | None) -> Iterator[bool]:
    """Create the branch if it is missing; delete it if the load fails and nothing else was written to it."""
    if start is None or branches.exists(parts, branch):
        yield False
        return
    created_at = branches.create(parts, branch, source=start, actor=actor).head_commit
    try:
        yield True
    except BaseException:
        with suppress(GraphError):  # the first error is raised; perhaps only the answer was lost
            branches.delete(parts, branch, actor=actor, if_commit=created_at)
        raise


def _result(
    parts: GraphContext,
    options: LoadOptions,
    loaded: Loaded,
    receipt: Receipt | None,
    *,
    created: bool,
    rejects_file: RejectsFile | None = None,
) -> LoadResult:
    entry = None if receipt is None else receipt.entry
    if receipt is not None and entry is None:
        raise InternalError("a load made no commit")
    replayed = receipt is not None and receipt.replayed
    return LoadResult(
        uri=parts.store.uri,
        branch=paths.branch_name(options.branch),
        mode=options.mode.value,
        nodes=_of_kind(loaded.counts, "node"),
        edges=_of_kind(loaded.counts, "edge"),
        commit=None if entry is None else entry.commit,
        entry=entry,
        base_branch=options.from_branch,
        branch_created=created,
        rejects=loaded.rejects,
        rejects_file=None if replayed or rejects_file is None else str(rejects_file),
        replayed=replayed,
        attempts=1 if receipt is None else receipt.attempts,
        warnings=() if receipt is None else receipt.warnings,
    )


def _of_kind(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    named = ((key.partition(":"), count) for key, count in sorted(counts.items()))
    return {name: count for (own, _, name), count in named if own == kind}
