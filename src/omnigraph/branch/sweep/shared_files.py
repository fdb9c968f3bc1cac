"""Find kept commits whose files still hold deleted rows of pruned ones, and prune these as well if that is wanted.

Deleting or updating a row writes no data file again: the commits after it share the file, with a deletion vector. A
value leaves the store only with the last kept commit that shares a file with one that showed it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep import roots
from omnigraph.branch.sweep.files import Candidate
from omnigraph.branch.sweep.reading import Files
from omnigraph.errors import FormatError, NotFoundError
from omnigraph.model.commit import Pin, Record
from omnigraph.storage.tables.upkeep import has_deleted_rows_of
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, PrunedBranch, prune
from omnigraph.transaction.pruning.retention import is_kept

Purge = Callable[..., object]
"""Rewrites the files with deleted rows: of a branch, and of `types`."""


class _LogsOnly:
    """Looks through no table: which entries are kept is known from the logs."""

    def listed(self) -> list[Candidate]:
        """List nothing."""
        return []

    def files(self, pins: Sequence[Pin]) -> list[Files]:
        """Return no files."""
        return [frozenset() for _ in pins]


def kept_entries(context: GraphContext) -> list[Record]:
    """Return the entries of all branches whose data a sweep would keep now, also for tags, forks, leases and merges."""
    found = _reached(context)
    return [
        entry
        for branch, line in found.lines.items()
        for entry in line.kept
        if line.has_data_of(entry.number) or (branch, entry.number) in found.held
    ]


def held_numbers(context: GraphContext) -> dict[str, set[int]]:
    """Return, by branch, the pruned entries whose data tags, forks, leases, writers and merges still need."""
    found: dict[str, set[int]] = {}
    for branch, number in _reached(context).held:
        found.setdefault(branch, set()).add(number)
    return found


def _reached(context: GraphContext) -> roots.Reached:
    now_us, found, reading = context.clock.now_us(), roots.Reached(), _LogsOnly()
    held = roots.held(context, now_us=now_us)
    roots.add_kept(context, reading, found, forgotten_before_us=now_us)
    roots.add_held(context, reading, found, held)
    roots.add_merge_bases(context, reading, found, held)
    return found


@dataclass(slots=True)
class PrunedRows:
    """The rows that pruned commits of one branch showed."""

    context: GraphContext
    shown: dict[tuple[str, int], Pin]
    judged: dict[tuple[str, int], bool]

    @classmethod
    def of(cls, context: GraphContext, done: PrunedBranch, named: Iterable[int]) -> "PrunedRows":
        """Collect the versions of entries that a prune passed, and of those that were named and passed before."""
        numbers = sorted({*done.after.gone} - {*done.before.gone} | {*done.after.gone} & {*named})
        entries = (context.log.read(done.branch, number) for number in numbers)
        pins = (pin for entry in entries if entry is not None for pin in entry.tables.values())
        return cls(context, {(pin.table, pin.version): pin for pin in pins}, {})

    def types_in(self, entry: Record) -> tuple[str, ...]:
        """Return the types of an entry whose files hold such rows, deleted."""
        return tuple(sorted(key for key, pin in entry.tables.items() if self._are_in(pin)))

    def _are_in(self, pin: Pin) -> bool:
        key = (pin.table, pin.version)
        if key not in self.judged:
            tables = self.context.tables
            others = [other for (table, _), other in self.shown.items() if table == pin.table]
            self.judged[key] = False
            for other in others:
                try:
                    if has_deleted_rows_of(tables.open(pin), tables.open(other)):
                        self.judged[key] = True
                        break
                except FormatError:
                    continue  # swept, or damaged: verification reports that
        return self.judged[key]


def commits_sharing(rows: PrunedRows, done: PrunedBranch) -> tuple[str, ...]:
    """Return the kept commits of any branch whose files hold deleted rows of pruned ones, oldest first."""
    found = [
        entry
        for entry in kept_entries(rows.context)
        # In a dry run the log does not have the mark yet.
        if entry.branch != done.branch or entry.number < done.first or done.after.is_kept(entry.number)
    ]
    return tuple(sorted({entry.head_commit for entry in found if rows.types_in(entry)}))


def purge_head(rows: PrunedRows, branch: str, purge: Purge) -> None:
    """Rewrite the files of a branch's head that hold deleted rows of pruned commits, in a commit of its own."""
    head = rows.context.log.head(branch)
    types = () if head is None or not head.is_live else rows.types_in(head)
    if types:
        purge(branch, types=types)


def prune_sharing(rows: PrunedRows, purge: Purge, actor: str | None) -> tuple[list[PrunedBranch], tuple[str, ...]]:
    """Purge the heads of all branches and prune every commit that shares files; returns the prunes and the commits."""
    context = rows.context
    for branch in live_branches(context):
        purge_head(rows, branch, purge)
    numbers: dict[str, dict[int, str]] = {}
    for entry in kept_entries(context):
        if entry.is_commit and rows.types_in(entry):
            numbers.setdefault(entry.branch, {})[entry.number] = entry.commit
    done: list[PrunedBranch] = []
    commits: list[str] = []
    for branch, named in sorted(numbers.items()):
        try:
            head = context.log.live_head(branch)
        except NotFoundError:
            continue  # deleted: its files are held for a branch that was made from it
        own = {number: commit for number, commit in named.items() if is_kept(head, number) and commit != head.commit}
        if own:
            done.append(prune(context, branch, Policy(numbers=tuple(own), now=True), actor=actor))
            commits += own.values()
    return done, tuple(sorted(commits))
