"""Quarantine: what cannot be read is put aside, and heads that need it get a commit that does without.

    records   the damaged object is copied to `__quarantine/`; an entry of a log comes back from its checkpoint, or is
              replaced by one that says it is lost and shows the state before it, or after it where none is before
    notes     what nobody can read of interrupted writes, leases, hints and checkpoints is moved there, and so are files
              that can be made again
    tables    every branch whose head needs damaged files gets one commit: the same rows without those in the files, or,
              where the version itself cannot be read, the last version of the table that can

What was lost is noted beside what was put aside, and reported by every later verification.

Nothing is deleted that could be read: damaged files of tables stay where they are, for the commits that name them.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import GraphError
from omnigraph.language.schema.render import render
from omnigraph.model.change import NO_CHANGES
from omnigraph.model.commit import LOST_COMMIT, RECOVERY_ACTOR, CommitKind, Pin, Record
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.storage.tables.examine import Examiner, Part
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.schema_files import restore_schema, restore_text
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet
from omnigraph.verification.findings import Finding, FindingKind, Loss, Verified
from omnigraph.verification.records import LOSSES, CheckedLog, noted_losses, read_log

_PARTS = {FindingKind.DATA: Part.DATA, FindingKind.DELETIONS: Part.DELETIONS, FindingKind.INDEX: Part.INDEX}
_NEEDLESS = frozenset(
    {
        FindingKind.CHECKPOINT,  # the entries are the truth; the next upkeep folds them again
        FindingKind.HINT,  # what it has seen is lost, and now reported
        FindingKind.LEASE,
        FindingKind.CHECKSUMS,
        FindingKind.DERIVED,
    }
)
# What is not found again once it was quarantined, or not once the commits that need it are pruned.
_LOST = frozenset({*_PARTS, FindingKind.VERSION, FindingKind.ENTRY, FindingKind.HINT})
_NOTHING = ChangedIds((), (), ())


def quarantine(context: GraphContext, found: Verified) -> tuple[str, ...]:
    """Do something about everything certain that was found."""
    context.refuse_read_only()
    certain = [finding for finding in found.findings if finding.certain]
    done: list[str] = []
    aside = f"{paths.QUARANTINE}{context.ids.new()}/"
    for finding in certain:
        if finding.kind is FindingKind.INTENT:
            done.append(_moved(context, finding.path, aside))
            context.intents.clear(finding.path.rsplit("/", 1)[1].partition(".")[0])
        # None of these is needed for a right answer, and each can be made again, or has nothing to say any more.
        elif finding.kind in _NEEDLESS:
            done.append(_moved(context, finding.path, aside))
            context.store.delete(finding.path)
        elif finding.kind is FindingKind.SCHEMA and finding.loss is Loss.NOTHING:
            restore_schema(context.store, finding.path)
            done.append(f"{finding.path} was made again from the copy beside its text")
    for finding in certain:
        if finding.kind is FindingKind.SCHEMA and finding.loss is Loss.HISTORY:
            with suppress(GraphError):  # the resolved form may be damaged as well
                with suppress(StoreError):  # it may be missing
                    context.store.copy(finding.path, f"{aside}{finding.path}")
                restore_text(context.store, finding.path, render)
                done.append(f"{finding.path} was made again; where its text was damaged, without comments")
    branches = {at.branch for one in certain if one.kind is FindingKind.ENTRY for at in one.affected}
    for branch in sorted(branches):
        done += _mend_log(context, branch, aside)
    damaged = {finding.path: _PARTS[finding.kind] for finding in certain if finding.kind in _PARTS}
    versions = {finding.path for finding in certain if finding.kind is FindingKind.VERSION}
    for branch in found.heads:
        done += _mend_head(context, branch, damaged, versions, certain)
    known = {path for _, path, _ in noted_losses(context)}
    lost = {
        finding.path: _described(finding)
        for finding in certain
        if finding.loss is Loss.CONTENT and finding.kind in _LOST and finding.path not in known
    }
    if lost:
        context.store.put(f"{aside}{LOSSES}", json.dumps({"format": 1, "lost": lost}).encode())
    return tuple(done)


def _described(finding: Finding) -> str:
    commits = ", ".join(
        f"{at.branch} #{at.number}" + (f" ({at.commit})" if at.commit else "") for at in finding.affected
    )
    rows = f", {finding.rows} rows" if finding.rows > 0 else ""
    return f"{finding.kind} {finding.path}{rows}: {finding.problem}" + (f"; of {commits}" if commits else "")


def _moved(context: GraphContext, path: str, aside: str) -> str:
    try:
        context.store.copy(path, f"{aside}{path}")
    except StoreError as fault:
        return f"{path} could not be copied aside: {fault.message}"
    return f"{path} was put aside as {aside}{path}"


def _mend_log(context: GraphContext, branch: str, aside: str) -> Iterable[str]:
    log = read_log(context, branch)
    for number in log.unreadable:
        folded = context.log.folded_entry(branch, number)
        mended = folded if folded is not None else _in_its_place(context, log, number)
        if mended is None:
            yield f"entry {number} of branch '{branch}' cannot be replaced: no entry beside it can be read"
            continue
        kept = context.log.restore(mended, aside=aside)
        log.entries[number] = mended
        how = "came back from its checkpoint" if folded is not None else "is lost; another says so in its place"
        yield f"entry {number} of branch '{branch}' {how}" + (f"; what was there is {kept}" if kept else "")


def _in_its_place(context: GraphContext, log: CheckedLog, number: int) -> Record | None:
    """An entry for the place of one that is lost: it shows the state before, and says that there was another."""
    before = log.entries.get(number - 1)
    after = next((log.entries[later] for later in sorted(log.entries) if later > number), None)
    # The entry after it names it as its parent.
    lost = after.parent if after is not None and after.number == number + 1 else None
    like = before if before is not None else after
    if like is None or (before is None and lost is None):
        return None
    notes: dict[str, object] = {"quarantined": True}
    if before is not None and lost is not None and lost <= before.commit:
        lost = None  # that one is not between the two
    if lost is not None:
        notes[LOST_COMMIT] = lost
    return replace(
        like,
        commit=_id_between(context, before, lost, after),
        number=number,
        kind=CommitKind.RECOVER,
        parent=None if before is None else before.head_commit,
        merged_parent=None,
        actor=RECOVERY_ACTOR,
        message=f"entry {number} could not be read and was quarantined; this is the state "
        + ("before it" if before is not None else "after it"),
        intent=None,
        idempotency_key=None,
        changes=NO_CHANGES,
        # What the lost one wrote is not known: whoever compares with it has to suppose everything.
        footprint=Footprint({key: TypeFootprint(writes_whole=True) for key in like.tables}),
        aborted=(),
        recovery=None,
        fork_of=None,
        fork_number=None,
        notes=notes,
        previous=None if before is None else before.link,
        checksum=after.previous.checksum
        if after is not None and after.previous is not None and after.previous.number == number
        else "",
    )


def _id_between(context: GraphContext, before: Record | None, lost: str | None, after: Record | None) -> str:
    """An id of its own for an entry in the place of a lost one; ids rise along a log."""
    if before is not None and (lost is None or after is None):
        return ids.after(before.commit, context.ids.new())
    assert lost is not None
    low = 0 if before is None else ids.decode(before.commit)
    found = (low + ids.decode(lost)) // 2
    return ids.encode(found if found > low else ids.decode(lost) + 1)


def _mend_head(
    context: GraphContext, branch: str, damaged: Mapping[str, Part], versions: set[str], findings: Iterable[Finding]
) -> Iterable[str]:
    head = context.log.live_head(branch)
    examiner = Examiner(context.tables)
    hit = {at.type_key for one in findings if one.kind in {*_PARTS, FindingKind.VERSION} for at in one.affected}
    mended: dict[str, Pin] = {}
    reported: dict[str, str] = {}
    for key in sorted(hit & head.tables.keys()):
        pin = head.tables[key]
        if examiner.manifest_path(pin) in versions:
            older = _last_readable(context, head, key, examiner, versions)
            if older is None:
                reported[key] = "no version of its table can be read"
                continue
            mended[key] = _without(examiner, context, older, damaged).pin
            reported[key] = "goes back to an older version"
        else:
            staged = _without(examiner, context, pin, damaged)
            if staged.is_unchanged:
                continue
            lost = pin.rows - staged.pin.rows
            mended[key] = staged.pin
            reported[key] = f"does without {lost} rows in damaged files" if lost else "does without a damaged index"
    if mended:
        entry = write(context, branch, _adopting(mended, reported), WriteOptions(actor=RECOVERY_ACTOR)).entry
        assert entry is not None
        yield f"branch '{branch}' got entry {entry.number}: " + "; ".join(f"{key} {reported[key]}" for key in mended)
    for key in reported.keys() - mended.keys():
        yield f"branch '{branch}': {key} could not be mended: {reported[key]}"


def _without(examiner: Examiner, context: GraphContext, pin: Pin, damaged: Mapping[str, Part]) -> StagedVersion:
    staged = examiner.without(pin, damaged)
    context.store.make_durable(staged.files)
    return staged


def _last_readable(context: GraphContext, head: Record, key: str, examiner: Examiner, versions: set[str]) -> Pin | None:
    for entry in context.log.backwards(head.branch, start=head.number):
        if not head.pruned.is_kept(entry.number):
            return None
        pin = entry.tables.get(key)
        if pin is None or examiner.manifest_path(pin) in versions:
            continue
        try:
            examiner.open(pin).expected()
        except GraphError:
            continue
        return pin
    return None


def _adopting(mended: Mapping[str, Pin], reported: Mapping[str, str]) -> Operation:
    def run(staging: WriteSet) -> None:
        for key, pin in mended.items():
            staging.adopt(key, pin, _NOTHING)
        staging.notes["quarantined"] = dict(reported)

    # Refused where others were faster: what they wrote has to be verified first.
    return Operation(CommitKind.RECOVER, frozenset(mended), run, redoable=False)
