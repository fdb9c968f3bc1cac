"""Write intents: the record a large write stores before its first effect."""

from dataclasses import dataclass, field
from typing import Any

from omnigraph.model.change import Changes
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.footprint import Footprint


@dataclass(frozen=True, slots=True)
class Writer:
    """Process that wrote an intent, so that other processes of the same boot can tell whether it is alive.

    Attributes:
        host: host name for messages; not unique.
        pid: process id.
        started: start time in kernel ticks.
        boot: id of the boot; empty if the system has none.
        namespace: PID namespace; likewise.
        token: unique token of the process.
    """

    host: str
    pid: int
    started: str
    boot: str = ""
    namespace: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """Plan of a write, stored before its first effect.

    Attributes:
        id: ULID of the intent.
        kind: kind of the resulting commit.
        branch: target branch.
        base_number: number of the log entry it starts from.
        base_commit: commit id of that entry.
        actor: user or program that writes, if known.
        writer: process that performs the write.
        tables: every table it will change, at the starting version.
        created_at_us: microseconds since the epoch.
        adopts: commits of other branches whose table versions it will use (merge, revert).
        pause_s: seconds for which a starved writer asks others not to write to these tables.
        since_us: earliest write time of its files by the store's clock; 0 if not before the intent.
    """

    id: str
    kind: CommitKind
    branch: str
    base_number: int
    base_commit: str
    actor: str | None
    writer: Writer
    tables: dict[str, Pin]
    created_at_us: int
    adopts: tuple[str, ...] = ()
    pause_s: float = 0.0
    since_us: int = 0

    @property
    def title(self) -> str:
        """Description of the write for messages."""
        by = f" by {self.actor}" if self.actor else ""
        process = f"process {self.writer.pid} of {self.writer.host}"
        return f"{self.kind.value} {self.id}{by} on branch '{self.branch}', {process}"


@dataclass(frozen=True, slots=True)
class Completed:
    """Second document of an intent: everything is staged, and this is all that is needed to publish it.

    Attributes:
        intent: id of the intent.
        schema: digest of the schema after the write.
        tables: staged pin of every changed table.
        removed: type keys the write removes.
        footprint: read set and write set.
        changes: changed entities by type.
        merged_parent: merged-in commit of a merge.
        notes: further JSON values that depend on the kind.
        options: options of the write as JSON values; they also bind a recovering process.
    """

    intent: str
    schema: str
    tables: dict[str, Pin]
    removed: tuple[str, ...]
    footprint: Footprint
    changes: Changes
    merged_parent: str | None
    notes: dict[str, object]
    options: dict[str, Any] = field(default_factory=dict)
