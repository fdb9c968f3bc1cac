"""Maintenance: optimize, prune by a policy, sweep and verify, in one pass or in repeated passes, within limits.

Every step is safe beside readers and writers, and independent of the others: a failed step is reported, the others run,
and the next pass tries again.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from omnigraph import limits
from omnigraph.api.optimize import OptimizeReport
from omnigraph.api.prune import Duration, PruneReport, SweepReport, seconds
from omnigraph.api.verify import VerifyReport, verify_part
from omnigraph.branch import branches
from omnigraph.clock import Clock
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, check
from omnigraph.transaction.validation import require_flag, require_optional_seconds, require_optional_whole_number

_NAP_S = 1.0
_FINDINGS_SHOWN = 10
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What a pass does, and how much it may take.

    Attributes:
        optimize: compact tables, build and extend indexes.
        keep: prune all but so many of the newest commits of each branch; None prunes by age alone, or not at all.
        older_than: prune commits older than this, in seconds or as a `timedelta`; with `keep`, what neither keeps.
        now: pruned commits lose their data without a grace period.
        sweep: delete the files that no commit needs.
        sweep_older_than: minimum age of deleted files; by default ten minutes.
        verify: check that the files of all commits exist, and report damage as a failure; nothing is changed.
        verify_reads_max: check about so many log entries and table versions in a pass, and continue from there in the
            next; None for everything in every pass.
        seconds_max: start no further step after so many seconds; None for no limit.
        bytes_max: total size of the tables to optimize per branch, the smallest first; None for no limit.
    """

    optimize: bool = True
    keep: int | None = None
    older_than: Duration | None = None
    now: bool = False
    sweep: bool = True
    sweep_older_than: Duration | None = None
    verify: bool = True
    verify_reads_max: int | None = limits.MAINTAIN_VERIFY_READS_MAX
    seconds_max: float | None = None
    bytes_max: int | None = None

    def __post_init__(self) -> None:
        # Checked here and not in the first pass, which may run unattended.
        for what in ("optimize", "now", "sweep", "verify"):
            require_flag(getattr(self, what), what)
        if self.keep is not None or self.older_than is not None:
            check(Policy(keep=self.keep, older_than_s=seconds(self.older_than)))
        seconds(self.sweep_older_than)
        require_optional_seconds(self.seconds_max, "the time of a pass")
        for what, least in (("bytes_max", 0), ("verify_reads_max", 1)):
            amount = require_optional_whole_number(getattr(self, what), what)
            if amount is not None and amount < least:
                raise InvalidRequestError(f"{what} is at least {least}, not {amount}")


DEFAULT_MAINTENANCE = Maintenance()


@dataclass(slots=True)
class MaintenanceReport:
    """What one pass did.

    Attributes:
        optimized: one report per branch.
        pruned: None if the policy does not prune, or the step failed.
        swept: None if the policy does not sweep, or the step failed.
        verified: None if the policy does not verify, or the step failed.
        left: steps skipped because of the limits, or left for the next pass.
        failures: failed steps with the reason, and damage.
        seconds: the duration of the pass.
    """

    optimized: list[OptimizeReport] = field(default_factory=list)
    pruned: PruneReport | None = None
    swept: SweepReport | None = None
    verified: VerifyReport | None = None
    left: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def damaged(self) -> int:
        """The number of findings of the verification."""
        return 0 if self.verified is None else len(self.verified.findings)


class Maintained(Protocol):
    """The methods of a graph that maintenance calls."""

    def optimize(self, branch: str, *, types: list[str] | None) -> OptimizeReport:
        """Optimize a branch."""
        ...

    def prune(self, *, keep: int | None, older_than: Duration | None, now: bool) -> PruneReport:
        """Prune every branch."""
        ...

    def sweep(self, *, older_than: Duration | None) -> SweepReport:
        """Delete files that nothing needs."""
        ...

    def verify(self) -> VerifyReport:
        """Verify the whole graph."""
        ...


def run_pass(graph: Maintained, parts: GraphContext, policy: Maintenance) -> MaintenanceReport:
    """Run one pass of maintenance; see `Graph.maintain_once`.

    Raises:
        InvalidRequestError: the policy is not a `Maintenance`.
    """
    if not isinstance(policy, Maintenance):
        raise InvalidRequestError(f"the policy of a pass must be a Maintenance, not {type(policy).__name__}")
    report, clock = MaintenanceReport(), parts.clock
    began = clock.monotonic()

    def step(what: str, work: Callable[[], _Done]) -> _Done | None:
        if policy.seconds_max is not None and clock.monotonic() - began >= policy.seconds_max:
            report.left.append(f"{what}: no time was left")
            return None
        try:
            return work()
        except GraphError as fault:
            report.failures.append(f"{what}: {fault.message}")
            return None

    for head in (step("listing branches", partial(branches.heads, parts)) or []) if policy.optimize else []:
        types, left = _affordable(head, policy.bytes_max)
        report.left += [f"optimize {head.branch}: {key} is too large for this pass" for key in left]
        done = step(f"optimize {head.branch}", partial(graph.optimize, head.branch, types=types))
        if done is not None:
            report.optimized.append(done)
    if policy.keep is not None or policy.older_than is not None:
        prune = partial(graph.prune, keep=policy.keep, older_than=policy.older_than, now=policy.now)
        report.pruned = step("prune", prune)
    if policy.sweep:
        report.swept = step("sweep", lambda: graph.sweep(older_than=policy.sweep_older_than))
    if policy.verify and policy.verify_reads_max is None:
        report.verified = step("verify", graph.verify)
    elif policy.verify and policy.verify_reads_max is not None:
        verified = step("verify", partial(verify_part, parts, reads_max=policy.verify_reads_max))
        report.verified = None if verified is None else verified[0]
        if verified is not None and verified[1] is not None:
            report.left.append(f"verify: the next pass continues in branch '{verified[1].branch}'")
    if report.verified is not None:
        found = report.verified.findings
        report.failures += [f"verify: {finding.path}: {finding.problem}" for finding in found[:_FINDINGS_SHOWN]]
        if len(found) > _FINDINGS_SHOWN:
            report.failures.append(f"verify: {len(found) - _FINDINGS_SHOWN} more findings")
    report.seconds = clock.monotonic() - began
    return report


def run_passes(
    run: Callable[[], MaintenanceReport],
    every: Duration,
    stop: threading.Event | None,
    *,
    is_closed: Callable[[], bool],
    clock: Clock,
) -> Iterator[MaintenanceReport]:
    """Run passes until `stop` is set; see `Graph.maintain`. A pass longer than the interval delays the next.

    Raises:
        InvalidRequestError: the interval is not positive, or `stop` is not an event.
    """
    every_s = seconds(every)
    if not every_s:
        raise InvalidRequestError(f"passes begin more than 0 seconds after each other, not {every!r}")
    if stop is not None and not isinstance(stop, threading.Event):
        raise InvalidRequestError(f"stop is a threading.Event, got {type(stop).__name__}")
    return _passes(run, every_s, lambda: is_closed() or (stop is not None and stop.is_set()), clock)


def _passes(
    run: Callable[[], MaintenanceReport], every_s: float, stops: Callable[[], bool], clock: Clock
) -> Iterator[MaintenanceReport]:
    while not stops():
        began = clock.monotonic()
        yield run()
        while (left := began + every_s - clock.monotonic()) > 0 and not stops():
            clock.sleep(min(left, _NAP_S))


def _affordable(head: Record, bytes_max: int | None) -> tuple[list[str] | None, list[str]]:
    """Choose the tables that fit into a number of bytes, None for all; and those that do not."""
    if bytes_max is None:
        return None, []
    types: list[str] = []
    total = 0
    for key, pin in sorted(head.tables.items(), key=lambda table: (table[1].bytes, table[0])):
        total += pin.bytes
        if total <= bytes_max:
            types.append(key)
    return types, [key for key in head.tables if key not in types]
