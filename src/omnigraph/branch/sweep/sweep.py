"""One sweep, and why it deletes nothing that anybody will need.

    1  list files        the candidates: nothing that is written later can be deleted
    2  list intents      and leases
    3  read the roots    every kept commit of every branch, tags, what branches were made from
    4  list intents      and leases, again
    5  classify          pure; the worklist
    6  put the floors    of logs that will be cut, durably, once the keys in what goes are noted
    7  delete            in batches

A file that 1 lists is needed later only if somebody names it in a commit that 3 does not see. Who could?

- A writer under an intent. Its intent was there at 2 or 4, and then its files and the commits it takes over are spared,
  along with every file younger than the intent. Or the intent came after 4: then its files came after 1, and it asks
  whether what it takes over is kept only after 3 has decided that.
- A writer without an intent. It publishes within a minute of its first file or stages again, and younger files are
  spared. If the caller wants those too, 1 is followed by a *barrier* on every branch: whoever staged before it finds
  its place in the log taken, and stages again.
- A fork, a tag, a lease. Each is put first and asks then; it was seen at 3 or 4, or it is told that it came too late.

Anything that cannot be read ends the sweep before 6, or spares the table in question. Running it again finds what is
left, whatever happened: nothing of its state is kept anywhere.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep import roots
from omnigraph.branch.sweep.classify import Ages, classified, first_to_count
from omnigraph.branch.sweep.delete import delete_all
from omnigraph.branch.sweep.files import Candidate, FileKind
from omnigraph.branch.sweep.reading import Reading, ReadingHere
from omnigraph.branch.sweep.worklist import Item, Swept, Verdict
from omnigraph.errors import FormatError, InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.transaction import idempotency
from omnigraph.transaction.barrier import put_barrier
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.recovery import heal

_SECOND_US = 1_000_000
# Several times as long as a write without an intent may take.
_SAFE_STAGINGS = 4


@dataclass(frozen=True, slots=True)
class _Judged:
    items: tuple[Item, ...]
    found: roots.Reached
    held: roots.Held


def sweep(
    parts: Parts, *, older_than_s: float | None = None, dry_run: bool = False, reading: Reading | None = None
) -> Swept:
    """Delete every file that nothing reaches and that is old enough.

    Args:
        parts (Parts): of the graph.
        older_than_s (float | None): younger files stay; ten minutes by default. With 0, everything that nothing
            reaches goes, and writers at work stage again.
        dry_run (bool): only say what would be deleted, and why.
        reading (Reading | None): lists files and looks through versions; this process by default.

    Returns:
        Swept: the worklist and what was deleted of it.

    Raises:
        FormatError: something that says what is needed cannot be read; nothing was deleted.
        UnavailableError: the store does not answer; nothing was deleted.
        PermissionDeniedError: the graph was opened read-only.
        InvalidRequestError: the age is negative.
    """
    older_than_s = limits.SWEEP_GRACE_S if older_than_s is None else older_than_s
    if older_than_s < 0:
        raise InvalidRequestError(f"an age cannot be {older_than_s} seconds")
    if not dry_run:
        parts.refuse_read_only()
        heal(parts)
    reading = reading or ReadingHere(parts)
    candidates = reading.listed()
    if not dry_run:
        # From here on what was listed is known to be ours: nobody's graph was there in the place of this one.
        parts.log.identity.confirm(anew=True)
    ages = Ages(
        now_us=parts.clock.now_us() if dry_run else parts.intents.store_now_us(),
        older_than_s=older_than_s,
        cut_s=parts.settings.log_cut_s,
        keys_s=limits.IDEMPOTENCY_KEYS_KEPT_S,
        stale_s=parts.settings.stale_s,
        spill_s=limits.SPILL_KEPT_S,
    )
    reached(Failpoint.SWEEP_LISTED)
    judged = _judged(parts, reading, candidates, ages)
    barriers = 0
    if not dry_run and _is_eager(parts, judged.items, ages):
        barriers = _put_barriers(parts)
        reached(Failpoint.SWEEP_BARRIERS_PUT)
        judged = _judged(parts, reading, candidates, ages)
    reached(Failpoint.SWEEP_CLASSIFIED)
    kept = [item.file for item in judged.items if item.verdict is Verdict.LEGITIMATE]
    swept = Swept(
        items=tuple(item for item in judged.items if item.verdict is not Verdict.LEGITIMATE),
        kept_files=len(kept),
        kept_bytes=sum(file.size for file in kept),
        barriers=barriers,
    )
    left = _left_under_way(parts, judged.held, ages, delete=not dry_run)
    items = swept.items + tuple(Item(each, Verdict.ORPHAN, "left under way by a writer that died") for each in left)
    if dry_run:
        return replace(swept, items=items)
    orphans = [item.file for item in swept.of(Verdict.ORPHAN)]
    orphans += _put_floors(parts, orphans, judged)
    reached(Failpoint.SWEEP_FLOORS_PUT)
    done = delete_all(parts, orphans)
    return replace(swept, items=items, deleted=(*done.files, *left), errors=done.errors)


def _judged(parts: Parts, reading: Reading, candidates: Sequence[Candidate], ages: Ages) -> _Judged:
    """Steps 2 to 5."""
    before = roots.held(parts, now_us=ages.now_us)
    forgotten = parts.clock.now_us() - int(ages.older_than_s * _SECOND_US)
    found = roots.reached(parts, reading, forgotten_before_us=forgotten)
    reached(Failpoint.SWEEP_ROOTS_READ)
    held = before.and_also(roots.held(parts, now_us=ages.now_us))
    roots.add_held(parts, reading, found, held)
    return _Judged(tuple(classified(candidates, found, held, ages)), found, held)


def _left_under_way(parts: Parts, held: roots.Held, ages: Ages, *, delete: bool) -> list[Candidate]:
    """Files that no listing shows. One that still grows is young, so these need be no older than any other."""
    grace_s = max(ages.older_than_s, limits.SWEEP_GRACE_S)
    before_us = ages.now_us - int(grace_s * _SECOND_US)
    if held.since_us is not None:
        before_us = min(before_us, held.since_us)
    stores = [parts.store] if parts.store is parts.table_files else [parts.store, parts.table_files]
    return [
        Candidate(listed.path, listed.size, listed.modified_us, FileKind.TEMPORARY, "")
        for store in stores
        for listed in store.leftovers(before_us=before_us, delete=delete)
    ]


def _is_eager(parts: Parts, items: Sequence[Item], ages: Ages) -> bool:
    """Whether a file is to go that a writer without an intent may just have staged."""
    safe_s = parts.settings.stage_without_intent_s * _SAFE_STAGINGS
    return any(
        item.verdict is Verdict.ORPHAN and item.file.is_staged and not ages.are_passed(item.file, safe_s)
        for item in items
    )


def _put_barriers(parts: Parts) -> int:
    return sum(put_barrier(parts, branch) is not None for branch in live_branches(parts))


def _put_floors(parts: Parts, orphans: Sequence[Candidate], judged: _Judged) -> list[Candidate]:
    """Say of every log that will be cut how far, before it is: an entry put there later is then not taken for one.

    And before that, what became of the requests whose keys these entries carry: nobody will look below a floor.

    Returns:
        list[Candidate]: floors that these make needless.
    """
    needed = roots.needed_by_intents(judged.held.intents)
    cut = {paths.unsegment(each.owner) for each in orphans if each.kind is FileKind.RECORD}
    notes = {item.file.path: item.file.size for item in judged.items if item.file.kind is FileKind.KEY}
    raised = {}
    for branch in sorted(cut):
        line = judged.found.lines[branch]
        first = first_to_count(line, needed.get(branch))
        # Keys of an earlier life are free again: what they did there must not hide what they do in this one.
        below = _readable(parts, branch, max(parts.log.floors.highest(branch), line.head.life or 1), first - 1)
        idempotency.note_before_cut(parts, branch, below, notes)
        parts.log.floors.raise_to(branch, first)
        raised[paths.segment(branch)] = first
    return [
        item.file
        for item in judged.items
        if item.file.kind is FileKind.FLOOR
        and item.verdict is Verdict.LEGITIMATE
        and (paths.entry_number(item.file.path) or 0) < raised.get(item.file.owner, 0)
    ]


def _readable(parts: Parts, branch: str, first: int, last: int) -> list[Record]:
    """The entries from `first` to `last`; without those that are damaged: they keep no sweep from going on."""
    try:
        return parts.log.between(branch, first, last)
    except FormatError:
        found = []
        for number in range(first, last + 1):
            with suppress(FormatError):
                found.append(parts.log.read(branch, number))
        return [each for each in found if each is not None]
