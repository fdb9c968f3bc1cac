"""One sweep, and why it deletes nothing that anybody will need.

    1  list files        the candidates: nothing that is written later can be deleted
    2  put barriers      one on every live branch, where a file is to go that an unpublished write may still name
    3  list intents      and leases
    4  read the roots    every kept commit of every branch, tags, what branches were made from
    5  list intents      and leases, again; then follow the branches to the commits they have in common
    6  classify          pure; the worklist
    7  put the floors    of logs that will be cut, durably, once the keys and the ancestry in what goes are noted
    8  erase             what entries of commits that were pruned by name say of entities
    9  delete            in batches

Whether barriers are needed is found out by going through 3 to 6 without them first.

A file that 1 lists is needed later only if somebody names it in a commit that 4 does not see. Who could?

- A writer without an intent. It staged the file on a head that it had read before 1, and the barrier of 2 stands behind
  that head: however late its put arrives, its place in the log is taken. It reads the barrier and stages again. On a
  branch that was made, or made again, after 2, a writer reads a head of after 1.
- A writer under an intent, which does not stage again. Its intent was there at 3 or 5, and then its files and the
  commits it takes over are spared. Or the intent came after 5: then its files came after 1, and it asks whether what
  it takes over is kept only after 4 has decided that. An intent that others took away protects nothing, and its writer
  looks for it when it meets a barrier. New tables are made before their intent: behind a barrier they are made again.
- A fork, a tag, a lease. Each is put first and asks then; it was seen at 4 or 5, or it is told that it came too late.

No age is part of this. Ages are a courtesy to those who read old commits.

A store that does not answer, or a damaged log, ends the sweep before 7. A table of which a version cannot be read is
spared and reported, and the rest is swept. Running it again finds what is left, whatever happened: nothing of its state
is kept anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep import roots
from omnigraph.branch.sweep.classify import Ages, classified
from omnigraph.branch.sweep.delete import delete_all, erase, to_erase
from omnigraph.branch.sweep.files import Candidate, FileKind, Item, Swept, Verdict
from omnigraph.branch.sweep.merge_bases import note
from omnigraph.branch.sweep.reading import Reading, ReadingHere
from omnigraph.errors import InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.transaction import idempotency
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import put_barrier
from omnigraph.transaction.recovery import heal

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class _Judged:
    items: tuple[Item, ...]
    found: roots.Reached
    held: roots.Held
    erasing: list[Record]


def sweep(
    context: GraphContext, *, older_than_s: float | None = None, dry_run: bool = False, reading: Reading | None = None
) -> Swept:
    """Delete every file that nothing reaches and that is old enough.

    Args:
        older_than_s (float | None): younger files stay; ten minutes by default.
        dry_run (bool): only say what would be deleted, and why.
        reading (Reading | None): lists files and looks through versions; this process by default.

    Raises:
        FormatError: a log, a tag, a lease or an intent cannot be read; nothing was deleted.
        UnavailableError: the store does not answer; nothing was deleted.
        PermissionDeniedError: the graph was opened read-only.
        InvalidRequestError: the age is negative.
    """
    older_than_s = limits.SWEEP_GRACE_S if older_than_s is None else older_than_s
    if older_than_s < 0:
        raise InvalidRequestError(f"an age cannot be {older_than_s} seconds")
    if not dry_run:
        context.refuse_read_only()
        heal(context)
    reading = reading or ReadingHere(context)
    candidates = reading.listed()
    if not dry_run:
        # From here on what was listed is known to be ours: nobody's graph was there in the place of this one.
        context.log.confirm_root()
    ages = Ages(
        now_us=context.clock.now_us() if dry_run else context.log.store_clock.ask(),
        older_than_s=older_than_s,
        cut_s=context.log_cut_s,
        keys_s=limits.IDEMPOTENCY_KEYS_KEPT_S,
        stale_s=context.settings.stale_s,
        spill_s=limits.SPILL_KEPT_S,
    )
    reached(Failpoint.SWEEP_LISTED)
    judged = _judged(context, reading, candidates, ages, roots.Reached())
    barriers = 0
    if not dry_run and any(item.verdict is Verdict.ORPHAN and item.file.is_staged for item in judged.items):
        barriers = sum(put_barrier(context, branch) is not None for branch in live_branches(context))
        reached(Failpoint.SWEEP_BARRIERS_PUT)
        judged = _judged(context, reading, candidates, ages, judged.found.versions())
    reached(Failpoint.SWEEP_CLASSIFIED)
    kept = [item.file for item in judged.items if item.verdict is Verdict.LEGITIMATE]
    swept = Swept(
        items=tuple(item for item in judged.items if item.verdict is not Verdict.LEGITIMATE),
        kept_files=len(kept),
        kept_bytes=sum(file.size for file in kept),
        barriers=barriers,
        held_by=tuple(sorted({found.intent.title for found in judged.held.intents})),
    )
    left = _left_under_way(context, judged.held, ages, delete=not dry_run)
    items = swept.items + tuple(Item(file, Verdict.ORPHAN, "left under way by a writer that died") for file in left)
    if dry_run:
        return replace(swept, items=items)
    orphans = [item.file for item in swept.of(Verdict.ORPHAN)]
    floors = _put_floors(context, orphans, judged)
    orphans += _superseded(judged, floors)
    reached(Failpoint.SWEEP_FLOORS_PUT)
    errors = erase(context, judged.erasing)
    done = delete_all(context, orphans, [item.file for item in judged.items], floors)
    return replace(swept, items=items, deleted=(*done.files, *left), errors=done.errors | errors)


def _judged(
    context: GraphContext, reading: Reading, candidates: Sequence[Candidate], ages: Ages, found: roots.Reached
) -> _Judged:
    """Do steps 3 to 6, adding to what was found before."""
    before = roots.held(context, now_us=ages.now_us)
    forgotten = context.clock.now_us() - int(ages.older_than_s * _SECOND_US)
    roots.add_kept(context, reading, found, forgotten_before_us=forgotten)
    reached(Failpoint.SWEEP_ROOTS_READ)
    held = before.and_also(roots.held(context, now_us=ages.now_us))
    roots.add_held(context, reading, found, held)
    roots.add_merge_bases(context, reading, found, held)
    erasing = to_erase(found, roots.needed_by_intents(held.intents))
    # Writers ask what entries after their base have touched, also those whose data is gone.
    whole = found.gone.keys() - {(entry.branch, entry.number) for entry in erasing}
    found.files |= {file for place in whole if (file := found.gone[place].footprint.file) is not None}
    return _Judged(tuple(classified(candidates, found, held, ages)), found, held, erasing)


def _left_under_way(context: GraphContext, held: roots.Held, ages: Ages, *, delete: bool) -> list[Candidate]:
    """Files that no listing shows. One that still grows is young, so these need be no older than any other."""
    grace_s = max(ages.older_than_s, limits.SWEEP_GRACE_S)
    before_us = ages.now_us - int(grace_s * _SECOND_US)
    if held.since_us is not None:
        before_us = min(before_us, held.since_us)
    stores = [context.store] if context.store is context.table_files else [context.store, context.table_files]
    return [
        Candidate(listed.path, listed.size, listed.modified_us, FileKind.TEMPORARY, "")
        for store in stores
        for listed in store.leftovers(before_us=before_us, delete=delete)
    ]


def _put_floors(context: GraphContext, orphans: Sequence[Candidate], judged: _Judged) -> dict[str, int]:
    """Say of every log that will be cut how far, before it is: an entry put there later is then not taken for one.

    And before that, what became of the requests whose keys these entries carry: nobody will look below a floor.
    """
    needed = roots.needed_by_intents(judged.held.intents)
    cut = {paths.unsegment(file.owner) for file in orphans if file.kind is FileKind.RECORD}
    notes = {item.file.path: item.file.size for item in judged.items if item.file.kind is FileKind.KEY}
    raised = {}
    for branch in sorted(cut):
        line = judged.found.lines[branch]
        first = roots.first_to_count(line, needed.get(branch))
        # Keys of an earlier life are free again: what they did there must not hide what they do in this one.
        below = roots.readable(context, branch, max(context.log.floors.highest(branch), line.head.life or 1), first - 1)
        idempotency.note_before_cut(context, branch, below, notes)
        if branch in judged.found.ancestry:
            note(context, judged.found.ancestry[branch])
        context.log.floors.raise_to(branch, first)
        raised[paths.segment(branch)] = first
    return raised


def _superseded(judged: _Judged, raised: Mapping[str, int]) -> list[Candidate]:
    """Return the floors and the notes of ancestry below those that were just put."""
    noted = {paths.segment(branch): cut.first for branch, cut in judged.found.ancestry.items()}
    newest = {
        FileKind.FLOOR: raised,
        FileKind.ANCESTRY: {owner: first for owner, first in noted.items() if owner in raised},
    }
    return [
        item.file
        for item in judged.items
        if item.file.kind in newest
        and item.verdict is Verdict.LEGITIMATE
        and (paths.entry_number(item.file.path) or 0) < newest[item.file.kind].get(item.file.owner, 0)
    ]
