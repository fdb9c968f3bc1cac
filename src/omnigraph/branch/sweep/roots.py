"""What is reached: every kept commit of every branch, and what tags, forks, intents and leases hold besides.

Everything is read afresh. Whatever cannot be read stops the sweep before it has deleted anything.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from omnigraph import limits
from omnigraph.branch.lineage import birth, entries_to_commit, entry_of_commit, inherited
from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep.merge_bases import descent
from omnigraph.branch.sweep.reading import Reading
from omnigraph.branch.tags import tagged_entries
from omnigraph.errors import FormatError, UnavailableError
from omnigraph.model.ancestry import CutLog
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import LeftBehind
from omnigraph.transaction.leases import FoundLease, leases


@dataclass(frozen=True, slots=True)
class Line:
    """What is kept of one branch's log.

    Attributes:
        head: its newest entry.
        first: the first entry that counts; below it the log may be cut.
        kept: the entries from there on, and those that somebody holds below.
    """

    head: Record
    first: int
    kept: tuple[Record, ...]

    def has_data_of(self, number: int) -> bool:
        """True if the branch itself keeps what an entry shows, and not only its place in the log."""
        return number >= self.first and number not in self.head.pruned.gone


@dataclass(frozen=True, slots=True)
class Held:
    """What current writers and readers hold.

    Attributes:
        intents: the notes of writes.
        leases: those that are still good.
    """

    intents: tuple[LeftBehind, ...]
    leases: tuple[FoundLease, ...]

    def and_also(self, later: "Held") -> "Held":
        """What was held at either time."""
        return Held((*self.intents, *later.intents), (*self.leases, *later.leases))

    @property
    def since_us(self) -> int | None:
        """Since when writes with an intent may have staged files, by the store's clock, less what that may be off."""
        begun = min(
            (left_behind.intent.since_us or left_behind.modified_us for left_behind in self.intents), default=None
        )
        return None if begun is None else begun - int(limits.STORE_CLOCK_OFF_S * 1_000_000)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that writes with an intent may have staged files in."""
        return frozenset(pin.table for left_behind in self.intents for pin in left_behind.intent.tables.values())


@dataclass(slots=True)
class Reached:
    """Everything that is reached, by path.

    Attributes:
        lines: per branch, what is kept of its log.
        entries: further entries, by branch and number, of which only the record is kept.
        files: files that are kept; one that ends with `/` stands for all below it.
        pins: the versions of tables that are kept.
        doubtful: tables of which a kept version could not be read just now, and why.
        named: entries that tags, leases and writers name, wherever they lie.
        ancestry: by branch, what merges must still know of entries that are cut away.
        gone: entries of commits that were pruned by name, whose places in the log stay, by branch and number.
        held: entries of pruned commits that tags, branches, leases, writers and merges need.
    """

    lines: dict[str, Line] = field(default_factory=dict)
    entries: set[tuple[str, int]] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    pins: set[tuple[str, int]] = field(default_factory=set)
    doubtful: dict[str, str] = field(default_factory=dict)
    named: list[Record] = field(default_factory=list)
    ancestry: dict[str, CutLog] = field(default_factory=dict)
    gone: dict[tuple[str, int], Record] = field(default_factory=dict)
    held: set[tuple[str, int]] = field(default_factory=set)

    def versions(self) -> "Reached":
        """The versions that were looked through, with nothing of the logs: those are to be read again."""
        return Reached(files=self.files, pins=self.pins, doubtful=self.doubtful)


def held(context: GraphContext, *, now_us: int) -> Held:
    """What is held now: one listing each of intents and leases, and a read for every one of them.

    Raises:
        FormatError: one of them cannot be read.
    """
    good = tuple(lease for lease in leases(context) if lease.is_good(now_us))
    return Held(tuple(context.intents.everything()), good)


def add_kept(context: GraphContext, reading: Reading, found: Reached, *, forgotten_before_us: int) -> None:
    """Read every root, and every version that a root names and that was not looked through before.

    Args:
        reading (Reading): looks through the versions.
        found (Reached): what they are added to.
        forgotten_before_us (int): branches deleted before this are roots no more; later ones might still be asked for.

    Raises:
        FormatError: a root cannot be read; it says which.
        UnavailableError: the store does not answer.
    """
    lines: dict[str, Line] = {}
    for names in (context.log.branch_names, partial(live_branches, context)):
        # Listed again: a branch made from what a prune had not yet passed may have come between listing and prune.
        for name in names():
            line = None if _is_living(lines.get(name)) else _line(context, name, forgotten_before_us)
            if line is not None:
                lines[name] = line
    found.lines |= lines
    roots = [entry for line in found.lines.values() for entry in line.kept if line.has_data_of(entry.number)]
    found.gone |= {
        (branch, entry.number): entry
        for branch, line in lines.items()
        for entry in line.kept
        if entry.number in line.head.pruned.gone
    }
    tagged = tagged_entries(context)
    # With the entry after it one can tell for how long a tagged one was the newest.
    found.entries |= {(entry.branch, entry.number + 1) for entry in tagged}
    found.named += tagged
    roots += _below(found, [*tagged, *_forked(context, found.lines.values()), *_inherited(context, found)])
    _mark(context, reading, found, roots, ())


def add_held(context: GraphContext, reading: Reading, found: Reached, holding: Held) -> None:
    """Add what those at work hold: the versions they start from and have staged, and commits they read or take over.

    Raises:
        UnavailableError: the store does not answer.
    """
    named = [*_leased(context, holding), *_adopted(context, found.lines, holding.intents)]
    found.named += named
    _mark(context, reading, found, _below(found, named), holding.intents)


def add_merge_bases(context: GraphContext, reading: Reading, found: Reached, holding: Held) -> None:
    """Add what the merge of any two living branches needs: its base, and the way there where the log will be cut.

    Raises:
        UnavailableError: the store does not answer.
    """
    living = [line for line in found.lines.values() if _is_living(line)]
    # Where what a branch keeps begins, too: from there on new branches may be made.
    lowest = [entry for line in living for entry in line.kept if entry.number == line.first]
    tips = [*(line.head for line in living), *lowest, *found.named]
    lines = descent(context, tips, [entry for line in found.lines.values() for entry in line.kept])
    _mark(context, reading, found, _below(found, lines.bases()), ())
    needed = needed_by_intents(holding.intents)
    found.ancestry = lines.cut_logs(
        {branch: first_to_count(line, needed.get(branch)) for branch, line in found.lines.items()}
    )


def first_to_count(line: Line, needed: int | None) -> int:
    """Below which entry a log may be cut.

    The two newest always stay: side by side they are files from those that somebody holds further down.
    """
    first = min(line.first, line.head.number_before)
    return max(first if needed is None else min(first, needed), 1)


def _below(found: Reached, entries: Iterable[Record]) -> list[Record]:
    """Return the entries among these whose data their branch itself does not keep."""
    new: dict[str, dict[int, Record]] = {}
    for entry in entries:
        line = found.lines.get(entry.branch)
        if line is not None and not line.has_data_of(entry.number):
            new.setdefault(entry.branch, {})[entry.number] = entry
    for branch, held in new.items():
        line = found.lines[branch]
        for known in line.kept:
            if known.number < line.first:
                held.pop(known.number, None)
        below = (entry for entry in held.values() if entry.number < line.first)
        found.lines[branch] = Line(line.head, line.first, (*below, *line.kept))
    found.held |= {(branch, number) for branch, held in new.items() for number in held}
    return [entry for held in new.values() for entry in held.values()]


def _is_living(line: Line | None) -> bool:
    return line is not None and line.head.is_live


def _inherited(context: GraphContext, found: Reached) -> list[Record]:
    """What living branches have inherited from branches that were deleted: their history, and when that ended."""
    entries: list[Record] = []
    for line in inherited(context, [line.head for line in found.lines.values() if _is_living(line)]).values():
        some = readable(context, line.branch, line.lowest, line.last)
        entries += (entry for entry in some if line.pruned.is_kept(entry.number))
        found.gone |= {(line.branch, entry.number): entry for entry in some if entry.number in line.pruned.gone}
        found.entries |= {(line.branch, entry.number) for entry in some}
        # Through the ends of all lives of the name since one learns what was pruned in this one.
        ends = context.log.head(line.branch)
        while ends is not None and (ends.life or 1) > line.first:
            ends = context.log.read(line.branch, (ends.life or 1) - 1)
            found.entries |= set() if ends is None else {(line.branch, ends.number)}
    return entries


def readable(context: GraphContext, branch: str, first: int, last: int) -> list[Record]:
    """The entries from `first` to `last`; without those that are damaged: they keep no sweep from going on."""
    try:
        return context.log.between(branch, first, last)
    except FormatError:
        found = []
        for number in range(first, last + 1):
            with suppress(FormatError):
                found.append(context.log.read(branch, number))
        return [entry for entry in found if entry is not None]


def _line(context: GraphContext, branch: str, forgotten_before_us: int) -> Line | None:
    for _ in range(limits.HEAD_LOOKS_MAX):
        head = context.log.head(branch)
        if head is None:
            return None
        if not head.is_live and head.created_at_us < forgotten_before_us:
            return Line(head, head.number, (head,))
        first = max(head.pruned.floor, birth(context, head))
        if not head.is_live:
            # Another sweep, with another clock or less patience, may have forgotten it already.
            first = min(max(first, context.log.floors.highest(branch)), head.number)
        try:
            return Line(head, first, (*context.log.between(branch, first, head.number_before), head))
        except FormatError as fault:
            newest = context.log.head(branch)
            if fault.code != "entry_missing" or newest is None or newest.pruned.floor <= head.pruned.floor:
                raise
            # Pruned and swept by another process while we read.
    raise UnavailableError(f"the log of branch '{branch}' is cut as fast as it can be read")


def _entry(context: GraphContext, branch: str, number: int) -> list[Record]:
    """Return an entry as a list; empty if it is gone."""
    found = context.log.read(branch, number)
    return [] if found is None else [found]


def _forked(context: GraphContext, lines: Iterable[Line]) -> list[Record]:
    """Where living branches begin, and the way to the commit they were made from: merges and listings need it."""
    found = []
    for line in lines:
        if line.head.is_live:
            for fork in _entry(context, line.head.branch, birth(context, line.head)):
                if fork.kind is CommitKind.FORK and fork.fork_of is not None and fork.fork_number is not None:
                    found += entries_to_commit(context, fork)
    return found


def _leased(context: GraphContext, holding: Held) -> list[Record]:
    return [
        entry
        for lease in holding.leases
        for entry in _entry(context, lease.lease.branch, lease.lease.number)
        if entry.head_commit == lease.lease.commit
    ]


def _adopted(context: GraphContext, lines: Mapping[str, Line], intents: Iterable[LeftBehind]) -> list[Record]:
    """The commits that current writers adopt.

    Those that were pruned as well: their writer may have asked before that. Where an entry is gone, it was cut away
    before the intent was there; then its writer finds out.
    """
    wanted = {commit for left_behind in intents for commit in left_behind.intent.adopts}
    found = (entry_of_commit(context, line.head, commit) for commit in wanted for line in lines.values())
    return [entry for entry in found if entry is not None]


def _mark(
    context: GraphContext, reading: Reading, found: Reached, roots: Iterable[Record], intents: Iterable[LeftBehind]
) -> None:
    """Add every file that these refer to. A table with a version that cannot be read is doubtful as a whole."""
    named: dict[tuple[str, int], tuple[Pin, Record | None]] = {}
    beside: list[str | None] = []
    for left_behind in intents:
        pins = [
            *left_behind.intent.tables.values(),
            *(left_behind.completed.tables.values() if left_behind.completed is not None else ()),
        ]
        named |= {(pin.table, pin.version): (pin, None) for pin in pins}
        if left_behind.completed is not None:
            beside += (left_behind.completed.changes.file, left_behind.completed.footprint.file)
    for entry in roots:
        named |= {(pin.table, pin.version): (pin, entry) for pin in entry.tables.values()}
        beside += (entry.changes.file, entry.footprint.file)
    found.files |= {file for file in beside if file is not None}
    new = [named[key] for key in named.keys() - found.pins]
    found.pins |= named.keys()
    for (pin, root), files in zip(new, reading.files([pin for pin, _ in new]), strict=True):
        if isinstance(files, frozenset):
            found.files |= files
        elif root is None or isinstance(files, UnavailableError) or _is_still_kept(context, root):
            found.doubtful[pin.table] = f"version {pin.version} could not be read: {files}"


def _is_still_kept(context: GraphContext, entry: Record) -> bool:
    """Whether no prune has passed an entry since it was read as a root."""
    head = context.log.head(entry.branch)
    return head is not None and head.is_live and head.pruned.is_kept(entry.number)


def counted_from(line: Line) -> set[int]:
    """Entries whose table map others count from, in a graph of very many types; without them those cannot be read."""
    return {
        number
        for entry in line.kept
        if len(entry.tables) > limits.WHOLE_MAP_TYPES_MAX
        for number in range(entry.number - limits.WHOLE_MAP_EVERY_ENTRIES, entry.number)
    }


def needed_by_intents(intents: Iterable[LeftBehind]) -> Mapping[str, int]:
    """Per branch, the first entry that an interrupted write must still find in the log to be judged."""
    needed: dict[str, int] = {}
    for left_behind in intents:
        branch, number = left_behind.intent.branch, left_behind.intent.base_number
        needed[branch] = min(number, needed.get(branch, number))
    return needed
