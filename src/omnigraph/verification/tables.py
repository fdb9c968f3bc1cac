"""Checking table versions: manifests, files, sizes; and, on demand, checksums and every value."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from omnigraph import limits
from omnigraph.errors import GraphError, UnavailableError
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import UNKNOWN, CommitKind, Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import Listed, StoreError
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.storage.tables.addresses import vector_bytes
from omnigraph.storage.tables.examine import Examined, Examiner, ExpectedFile, Part
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.checksums import has_digests, is_digest_of, read_digests
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss
from omnigraph.verification.records import CheckedLog

_KINDS = {Part.DATA: FindingKind.DATA, Part.DELETIONS: FindingKind.DELETIONS, Part.INDEX: FindingKind.INDEX}


def rebuild_deletion_vectors(context: GraphContext, findings: Iterable[Finding]) -> frozenset[str]:
    """Write damaged deletion vectors again where the log tells what was in them; the damaged ones are put aside.

    Change sets name the rows that each commit took out of older fragments. From the newest earlier version that shows
    the fragment under a readable vector, or under none, every commit up to the damaged one is followed. What is left
    must be as many rows as the version says; otherwise nothing is done.
    """
    damaged = [finding for finding in findings if finding.kind is FindingKind.DELETIONS and finding.certain]
    paths_damaged = {finding.path for finding in damaged}
    aside = f"{paths.QUARANTINE}{context.ids.new()}/"
    done = set()
    for finding in damaged:
        try:
            body = _rebuilt(context, finding.path, finding.affected[0], paths_damaged)
        except GraphError:
            continue  # something else is damaged as well; the fragment is done without
        if body is None:
            continue
        with suppress(StoreError):  # it may be missing
            context.table_files.copy(finding.path, f"{aside}{finding.path}")
        context.table_files.put(finding.path, body)
        done.add(finding.path)
    return frozenset(done)


def _rebuilt(context: GraphContext, path: str, at: Affected, damaged: set[str]) -> bytes | None:
    """The content that a deletion vector must have by the changes of commits; None where they do not tell."""
    entry = context.log.read(at.branch, at.number)
    if entry is None or at.type_key not in entry.tables:
        return None
    pin, examiner = entry.tables[at.type_key], Examiner(context.tables)
    files = examiner.open(pin).files_under(path)
    live = None if files is None else _live_ids(_backwards(context, entry), context, pin, files, damaged)
    deleted = None if live is None else examiner.open(pin).deleted_rows(path, live)
    return None if deleted is None else vector_bytes(path, deleted)


def _live_ids(
    entries: Iterator[Record], context: GraphContext, pin: Pin, files: tuple[str, ...], damaged: set[str]
) -> set[str] | None:
    """The ids of the rows that a fragment shows under a damaged vector, by what is known of it before."""
    examiner = Examiner(context.tables)
    gone: set[str] = set()
    for earlier in entries:
        key, before = next(
            ((key, other) for key, other in earlier.tables.items() if other.table == pin.table), ("", None)
        )
        if before is None:
            return None
        shown = examiner.open(before).ids_in(files, damaged)
        if shown is not None:
            return shown - gone
        change = _changes(context, earlier).get(key, TypeChange(0, 0, 0))
        if (change.updated and change.updated_ids is None) or (change.deleted and change.deleted_ids is None):
            return None
        gone |= {*(change.updated_ids or ()), *(change.deleted_ids or ())}
    return None


def _backwards(context: GraphContext, entry: Record) -> Iterator[Record]:
    """The entries of a branch from one on, newest first, and of the branches it was made from."""
    while True:
        fork = entry
        for earlier in context.log.backwards(entry.branch, start=entry.number):
            yield earlier
            fork = earlier
            if earlier.kind is CommitKind.FORK:
                break
        if fork.fork_of is None or fork.fork_number is None:
            return
        origin = context.log.read(fork.fork_of, fork.fork_number)
        if origin is None:
            return
        entry = origin


def _changes(context: GraphContext, entry: Record) -> dict[str, TypeChange]:
    path = entry.changes.file
    if path is None:
        return dict(entry.changes.types)
    return read_change_file(context.store.get(path), path=paths.absolute(context.store, path))


@dataclass(slots=True)
class TableCheck:
    """One table, all its versions."""

    context: GraphContext
    examiner: Examiner
    table: str
    deep: bool  # compare checksums, and read every value
    recorded: Mapping[str, str] = field(default_factory=dict)  # checksums of its files that records name, by path
    versions: int = 0  # how many versions were looked at
    compared: int = 0  # how many files were compared with a checksum
    files: dict[str, int] = field(default_factory=dict)  # the files looked at, with their sizes
    listings: int = 0  # how many pages of listings that took
    vectors: int = 0  # how many deletion vectors were read: nothing else tells whether one is whole
    _is_fresh: bool = False
    _there: dict[str, Listed] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _pins: Mapping[Pin, Sequence[Affected]] = field(default_factory=dict)
    # By path and by what a version says of its size: a damaged version may say anything.
    _problems: dict[tuple[str, int], tuple[str, bool] | None] = field(default_factory=dict)
    _findings: dict[str, Finding] = field(default_factory=dict)

    @property
    def findings(self) -> Sequence[Finding]:
        """What is wrong, per object, with every commit looked at that needs it."""
        return tuple(self._findings.values())

    def look(self, pins: Mapping[Pin, Sequence[Affected]]) -> None:
        """Look at some versions; each file is looked at once."""
        self._is_fresh = False
        self._pins = pins
        if not self.listings:
            self._list()
            noted = read_digests(self.context, self.table)
            # What was recorded as a file was written goes before what was noted of it later.
            self._digests = {**noted, **self.recorded}
            if self.deep and not noted and has_digests(self.context, self.table):
                self._findings[paths.digests(self.table)] = Finding(
                    FindingKind.CHECKSUMS,
                    paths.digests(self.table),
                    "the checksums of this table cannot be read; `optimize` notes them again",
                    Loss.NOTHING,
                )
        for pin, affected in pins.items():
            self.versions += 1
            self._version(pin, affected)

    def _list(self) -> None:
        self._there = {listed.path: listed for listed in self.context.table_files.list(f"{self.table}/")}
        self.listings += 1 + len(self._there) // limits.STORE_LIST_PAGE_KEYS_MAX
        self._is_fresh = True

    def _listed(self, path: str) -> Listed | None:
        """Return a file if it exists; the listing is repeated for files younger than it."""
        if path not in self._there and not self._is_fresh:
            self._list()
        return self._there.get(path)

    def _version(self, pin: Pin, affected: Sequence[Affected]) -> None:
        manifest = self.examiner.manifest_path(pin)
        try:
            version = self.examiner.open(pin)
            expected = version.expected()
            holds = (version.rows, version.bytes)
        except GraphError as fault:
            # Of whatever class: a damaged manifest may ask the table library for anything.
            self._note(
                FindingKind.VERSION, manifest, fault.message, affected, rows=pin.rows, certain=_is_certain(fault)
            )
            return
        listed = self._listed(manifest)
        self.files[manifest] = 0 if listed is None else listed.size
        problem = self._compared(manifest)
        if problem is None and UNKNOWN not in (pin.rows, pin.bytes) and (pin.rows, pin.bytes) != holds:
            problem = (f"holds {holds[0]} rows in {holds[1]} bytes, its commits say {pin.rows} in {pin.bytes}", True)
        if problem is not None:
            # What it says of files may be as wrong; versions that are whole tell of those.
            self._note(FindingKind.VERSION, manifest, problem[0], affected, rows=pin.rows, certain=problem[1])
            return
        for file in expected:
            known = (file.path, file.bytes)
            if known not in self._problems:
                wrong = self._examined(file) or self._read(version, file)
                if wrong is not None and file.part is Part.DELETIONS and self._was_rebuilt(file.path, affected):
                    wrong = None
                if wrong is not None and wrong[1] and self._is_read_elsewhere(pin, file):
                    self._note(FindingKind.VERSION, manifest, wrong[0], affected, rows=pin.rows)
                    continue
                self._problems[known] = wrong
            wrong = self._problems[known]
            if wrong is not None:
                self._note(_KINDS[file.part], file.path, wrong[0], affected, rows=file.rows, certain=wrong[1])

    def _was_rebuilt(self, path: str, affected: Sequence[Affected]) -> bool:
        """Whether a deletion vector was written by `rebuild_deletion_vectors`: right, though not Lance's own bytes."""
        try:
            return self.context.table_files.get(path) == _rebuilt(self.context, path, affected[0], {path})
        except GraphError:
            return False

    def _is_read_elsewhere(self, pin: Pin, file: ExpectedFile) -> bool:
        """Whether another version finds nothing wrong with a file; then it is not the file that is damaged."""
        for other in self._pins:
            if other == pin:
                continue
            try:
                version = self.examiner.open(other)
                same = [expected for expected in version.expected() if expected.path == file.path]
            except GraphError:
                continue
            if same:
                return (self._examined(same[0]) or self._read(version, same[0])) is None
        return False

    def _examined(self, file: ExpectedFile) -> tuple[str, bool] | None:
        """What is wrong with a file from outside, and whether that is certain."""
        if file.part is Part.INDEX:
            inside = self._inside(file.path)
            if not inside and not self._is_fresh:
                self._list()
                inside = self._inside(file.path)
            known = {path for path in self._digests if path.startswith(file.path)}
            missing = sorted(known - {listed.path for listed in inside})
            if not inside or missing:
                what = f", {missing[0].rpartition('/')[2]} of it" if inside else ""
                return f"the index {file.name} is missing{what}", True
            for listed in inside:
                self.files[listed.path] = listed.size
                wrong = self._compared(listed.path)
                if wrong is not None:
                    return wrong
        else:
            there = self._listed(file.path)
            if there is None:
                return "it is missing", True
            self.files[file.path] = there.size
            if file.bytes not in (-1, there.size):
                return f"it has {there.size} bytes, and had {file.bytes} when it was written", True
            return self._compared(file.path)
        return None

    def _read(self, version: Examined, file: ExpectedFile) -> tuple[str, bool] | None:
        """What is wrong with what is in a file, and whether that is certain."""
        try:
            match file.part:
                case Part.DELETIONS:
                    self.vectors += 1
                    version.read_deletions(file.path)
                case Part.DATA if self.deep:
                    version.read_rows(file.path)
                case Part.INDEX if self.deep:
                    version.read_index(file.name)
                case _:
                    pass
        except GraphError as fault:
            return fault.message, _is_certain(fault)
        return None

    def _inside(self, folder: str) -> list[Listed]:
        return [listed for path, listed in self._there.items() if path.startswith(folder)]

    def _compared(self, path: str) -> tuple[str, bool] | None:
        noted = self._digests.get(path)
        if noted is None or not self.deep:
            return None
        try:
            body = self.context.table_files.get(path)
        except StoreError as fault:
            return fault.message, _is_certain(fault)
        self.compared += 1
        return (
            None if is_digest_of(body, noted) else ("its content is not what was written: the checksum differs", True)
        )

    def _note(
        self,
        kind: FindingKind,
        path: str,
        problem: str,
        affected: Sequence[Affected],
        *,
        rows: int,
        certain: bool = True,
    ) -> None:
        known = self._findings.get(path)
        if known is not None:
            self._findings[path] = replace(known, affected=(*known.affected, *affected), rows=max(known.rows, rows))
            return
        self._findings[path] = Finding(
            kind,
            path,
            problem,
            Loss.NOTHING if kind is FindingKind.INDEX else Loss.CONTENT,
            tuple(affected),
            rows=rows,
            certain=certain,
        )


def _is_certain(fault: GraphError) -> bool:
    return not isinstance(fault, UnavailableError)


def named_by(log: CheckedLog, pins: dict[str, dict[Pin, list[Affected]]]) -> None:
    """Add, by table, the versions that the kept entries of a log name, each with those entries."""
    for entry in log.kept():
        for key, pin in entry.tables.items():
            affected = pins.setdefault(pin.table, {}).setdefault(pin, [])
            affected.append(Affected(log.branch, entry.number, entry.commit, key))
