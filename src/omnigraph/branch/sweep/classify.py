"""Which files go and which stay, file with its reason. Pure: it looks at what was read before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.branch.sweep.files import Candidate, FileKind, Item, Verdict
from omnigraph.branch.sweep.roots import Held, Reached, counted_from, first_to_count, needed_by_intents
from omnigraph.storage import derived, paths
from omnigraph.storage.records.read import CUT_MARK

_SECOND_US = 1_000_000
# What an interrupted healer or writer may leave beside a note; the note itself is recovery's.
_NOTE_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Ages:
    """How old a file must be, by the store's clock.

    Attributes:
        now_us: the store's idea of now.
        older_than_s: younger ones are spared.
        cut_s: log entries younger than this are spared, whatever else was said.
        keys_s: notes of idempotency keys younger than this are spared, too.
        stale_s: what belongs to an intent that is not there goes after this.
        spill_s: frames that a job laid down beside the graph are spared for this long.
    """

    now_us: int
    older_than_s: float
    cut_s: float
    keys_s: float
    stale_s: float
    spill_s: float

    def are_passed(self, candidate: Candidate, seconds: float) -> bool:
        """Whether a file is older than that."""
        return self.now_us - candidate.modified_us >= seconds * _SECOND_US


@dataclass(slots=True)
class _Facts:
    reached: Reached
    held: Held
    ages: Ages
    folders: frozenset[str]
    records: Mapping[str, tuple[int, frozenset[int]]]
    oldest_record_us: Mapping[str, int]
    highest_floor: Mapping[str, int]
    newest_ancestry: Mapping[str, int]
    notes: frozenset[str]
    tables: frozenset[str]


def classified(candidates: Iterable[Candidate], reached: Reached, held: Held, ages: Ages) -> list[Item]:
    """Every candidate with its verdict."""
    files = list(candidates)
    facts = _facts(files, reached, held, ages)
    return [_item(file, facts) for file in files]


def _facts(files: list[Candidate], reached: Reached, held: Held, ages: Ages) -> _Facts:
    needed = needed_by_intents(held.intents)
    records = {}
    for branch, line in reached.lines.items():
        # The first entry of a log is never cut: it keeps the name from being taken for one that was never used.
        beside = (number for name, number in reached.entries if name == branch)
        numbers = frozenset({1, *(entry.number for entry in line.kept), *counted_from(line), *beside})
        records[paths.segment(branch)] = (first_to_count(line, needed.get(branch)), numbers)
    oldest: dict[str, int] = {}
    highest: dict[str, int] = {}
    ancestry: dict[str, int] = {}
    for file in files:
        number = paths.entry_number(file.path)
        if number is None:
            continue
        if file.kind is FileKind.RECORD and number >= records.get(file.owner, (1, frozenset()))[0]:
            oldest[file.owner] = min(file.modified_us, oldest.get(file.owner, file.modified_us))
        elif file.kind is FileKind.FLOOR:
            highest[file.owner] = max(number, highest.get(file.owner, 1))
        elif file.kind is FileKind.ANCESTRY and paths.unsegment(file.owner) in reached.ancestry:
            ancestry[file.owner] = max(number, ancestry.get(file.owner, 1))
    return _Facts(
        reached,
        held,
        ages,
        folders=frozenset(file for file in reached.files if file.endswith("/")),
        records=records,
        oldest_record_us=oldest,
        highest_floor=highest,
        newest_ancestry=ancestry,
        notes=frozenset(
            file.owner for file in files if file.kind is FileKind.INTENT and file.path.endswith(_NOTE_SUFFIX)
        ),
        tables=frozenset(table for table, _ in reached.pins),
    )


def _item(file: Candidate, facts: _Facts) -> Item:
    if file.kind is FileKind.OTHER:
        return Item(file, Verdict.LEGITIMATE, "no kind of file that is swept")
    doubt = facts.reached.doubtful.get(file.owner)
    if doubt is not None:
        return Item(file, Verdict.INDETERMINATE, f"of its table, {doubt}")
    kept, why = _reason(file, facts)
    if kept:
        return Item(file, Verdict.LEGITIMATE, why)
    ages = facts.ages
    if file.is_staged and _may_be_named_by_a_write(file, facts):
        return Item(file, Verdict.SPARED, f"{why}; a write with an intent may have staged it")
    least = {
        FileKind.RECORD: max(ages.cut_s, ages.older_than_s),
        FileKind.CHECKPOINT: ages.older_than_s,
        FileKind.KEY: max(ages.keys_s, ages.older_than_s),
        FileKind.INTENT: max(ages.stale_s, ages.older_than_s),
        FileKind.FLOOR: 0,
        FileKind.SPILL: max(ages.spill_s, ages.older_than_s),
    }.get(file.kind, ages.older_than_s)
    if not ages.are_passed(file, least):
        return Item(file, Verdict.SPARED, f"{why}; younger than {least:g} s")
    return Item(file, Verdict.ORPHAN, why)


def _may_be_named_by_a_write(file: Candidate, facts: _Facts) -> bool:
    """True if a write whose intent was seen may have staged a file: in a table it names, a new one, or in none."""
    since_us = facts.held.since_us
    if since_us is None or file.modified_us < since_us:
        return False
    return file.owner in facts.held.tables or file.owner not in facts.tables


def _reason(file: Candidate, facts: _Facts) -> tuple[bool, str]:
    """Whether a file is reached, and why or why not."""
    match file.kind:
        case FileKind.RECORD:
            first, numbers = facts.records.get(file.owner, (1, frozenset()))
            number = paths.entry_number(file.path) or 0
            if number >= first or number in numbers:
                return True, "an entry that is kept"
            if file.size == len(CUT_MARK) and number - 1 in numbers:
                return True, "the mark behind an entry that is kept"
            return False, f"an entry below {first}, the first that counts in its log"
        case FileKind.CHECKPOINT:
            first, _ = facts.records.get(file.owner, (1, frozenset()))
            if (paths.entry_number(file.path) or 0) >= first:
                return True, "entries of it are kept"
            return False, "all its entries are below the floor"
        case FileKind.FLOOR:
            if paths.entry_number(file.path) == facts.highest_floor.get(file.owner):
                return True, "the floor of a log"
            return False, "a floor below a higher one"
        case FileKind.ANCESTRY:
            if paths.entry_number(file.path) == facts.newest_ancestry.get(file.owner):
                return True, "merges may need it"
            return False, "no merge needs it, or there is a newer one"
        case FileKind.KEY:
            oldest = facts.oldest_record_us.get(file.owner)
            if oldest is None or file.modified_us >= oldest:
                return True, "the commit under its key may be kept"
            return False, "older than every entry that is kept of its branch"
        case FileKind.CHANGES:
            if file.path in facts.reached.files:
                return True, "named by a commit that is kept"
            return False, "named by no commit that is kept"
        case FileKind.INTENT:
            if file.owner in facts.notes:
                return True, "belongs to a write under way"
            return False, "its intent is gone"
        case FileKind.LEASE:
            if any(lease.lease.id == file.owner for lease in facts.held.leases):
                return True, "a lease that is good"
            return False, "a lease that has run out"
        case FileKind.ADJACENCY | FileKind.WORDS:
            version = derived.version_of(file.path)
            if version in facts.reached.pins:
                return True, "made for a version that is kept"
            return False, "made for a version that is not kept"
        case FileKind.DIGESTS:
            if {f"{paths.NODES}{file.owner}", f"{paths.EDGES}{file.owner}"} & facts.tables:
                return True, "checksums of a table that is kept"
            return False, "no commit that is kept has its table"
        case FileKind.SPILL:
            return False, "frames of a job, no longer needed when it is over"
        case FileKind.TRANSACTION:
            return False, "its version says the same itself"
        case _:
            return _in_table(file, facts)


def _in_table(file: Candidate, facts: _Facts) -> tuple[bool, str]:
    if file.path in facts.reached.files:
        return True, "a version that is kept needs it"
    if any(file.path.startswith(folder) for folder in _folders_above(file.path) & facts.folders):
        return True, "a version that is kept needs it"
    if _blob_owner(file.path) in facts.reached.files:
        return True, "a version that is kept needs it"
    if file.owner not in facts.tables:
        return False, "no commit that is kept has its table"
    return False, "no version that is kept needs it"


def _folders_above(path: str) -> set[str]:
    segments = path.split("/")
    return {"/".join(segments[:count]) + "/" for count in range(1, len(segments))}


def _blob_owner(path: str) -> str:
    """The data file that a file in a folder of the same name belongs to: large values lie beside it."""
    folder, _, _ = path.rpartition("/")
    return f"{folder}.lance"
