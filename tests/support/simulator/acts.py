"""What simulated hosts do: writes, loads, merges, prunes, sweeps, compactions, branches, tags and leases."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests.support import operations as op
from tests.support.operations import PERSON
from tests.support.simulator.host import SETTINGS, Host
from tests.support.simulator.model import Request
from tests.support.simulator.trouble import Trouble

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.schemas import Schemas
from omnigraph.branch import branches, tags
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.failpoints import Crash
from omnigraph.model.commit import MAIN
from omnigraph.model.conflict import DeclaredDead
from omnigraph.storage.tables.location import reopened
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.leases import leased
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.write import Operation, write

Act = Callable[[Host, GraphContext], str]

_ACTS_MAX = 4
_LEASE_S = 600.0
_IDLE_S = (0.5, 61.0, 700.0, 3_000.0, 100_000.0)
# What a handle says once another graph, or none, is where its own was.
_ROOT_IS_GONE = frozenset({"graph_replaced", "graph_not_found", "init_unfinished"})


def work(host: Host) -> None:
    """Do some things; after a death or a replaced root, open the graph again."""
    universe = host.universe
    chance = universe.chance
    acts = [act for act in ACTS if act in WRITES or chance.random() < 0.6]
    parts: GraphContext | None = None
    for _ in range(chance.randint(1, _ACTS_MAX)):
        if chance.random() < 0.3:
            universe.scheduler.switch(host.name, chance.choice(_IDLE_S))
        # What others do while a host stands still in the middle of a write is what is worth looking at.
        is_dangerous = universe.standing_still and chance.random() < 0.8
        act = chance.choice(DANGEROUS if is_dangerous else acts)
        host.trouble = Trouble() if is_dangerous else Trouble.drawn(chance, universe.weather, is_write=act in WRITES)
        host.disturbed = False
        host.say(f"{act.__name__} …")
        try:
            with host.acts():
                if parts is None:
                    parts = host.open()
                outcome = act(host, parts)
        except Crash:
            host.start_process()
            parts, outcome = None, "died"
        except omnigraph.GraphError as fault:
            outcome = f"{type(fault).__name__} {fault.code}: {str(fault)[:200]}"
            if fault.code in _ROOT_IS_GONE:
                assert universe.weather.root != "stays", f"{host.name}: {fault!r}"
                host.start_process()
                parts = None
            elif fault.code == "fence_mismatch":
                assert universe.weather.has_other_fence, f"{host.name}: {fault!r}"
                host.say("refused: it names another fence")
                return
            assert not isinstance(fault, omnigraph.InternalError), f"{host.name}: {fault!r}"
            is_declared_dead = any(isinstance(found, DeclaredDead) for found in getattr(fault, "conflicts", ()))
            assert not is_declared_dead or host.trouble.seconds >= SETTINGS.stale_s, (
                f"{host.name}: it was at work all the time, and others took its write for dead: {fault!r}"
            )
            is_calm = not host.disturbed and universe.weather.root == "stays"
            assert not (is_calm and act in WRITES and host.writing and host.writing.branch == MAIN), (
                f"{host.name}: nothing was wrong, and yet its write failed: {fault!r}"
            )
        host.say(f"{act.__name__}: {outcome}")
        host.writing = None
        host.cut_off_until_s = 0.0


def insert(host: Host, parts: GraphContext) -> str:
    """Insert one row without an intent."""
    return _write(host, parts, _branch(host, parts), lambda rows: op.append(PERSON, rows))


def load(host: Host, parts: GraphContext) -> str:
    """Insert one row under an intent, as a load does."""
    return _write(host, parts, _branch(host, parts), lambda rows: op.noted(op.upsert_many({PERSON: rows})))


def update(host: Host, parts: GraphContext) -> str:
    """Set a row of main that others set, too."""
    return _write(host, parts, MAIN, lambda rows: op.upsert(PERSON, rows), row="shared")


def _write(
    host: Host, parts: GraphContext, branch: str, operation: Callable[[op.Rows], Operation], row: str = ""
) -> str:
    model = host.universe.model
    number = len(model.requests)
    request = Request({row or f"row{number}": number}, branch)
    model.requests.append(request)
    host.writing = request
    try:
        entry = write(parts, branch, operation(request.rows)).entry
    except (omnigraph.OutcomeUnknownError, omnigraph.UnavailableError):
        raise
    except omnigraph.GraphError:
        request.outcome = "refused"
        raise
    assert entry is not None
    request.outcome, request.commit, request.number = "done", entry.commit, entry.number
    request.at_s = host.universe.scheduler.now_s
    return f"{request.rows} is entry {entry.number} of {branch}"


def _branch(host: Host, parts: GraphContext) -> str:
    """Pick a live branch, main more often than not."""
    is_main = host.universe.chance.random() < 0.7
    return MAIN if is_main else host.universe.chance.choice(branches.names(parts))


@contextmanager
def _sweeping(host: Host) -> Iterator[None]:
    host.universe.sweeping += 1
    try:
        yield
    finally:
        host.universe.sweeping -= 1


def sweep_files(host: Host, parts: GraphContext) -> str:
    """Sweep, kindly or eagerly."""
    older_than_s = host.universe.chance.choice([None, 0, 0, 60])
    with _sweeping(host):
        swept = sweep(parts, older_than_s=older_than_s)
    return f"older than {older_than_s}: {len(swept.deleted)} files, {swept.barriers} barriers"


def prune_branch(host: Host, parts: GraphContext) -> str:
    """Drop old commits."""
    chance = host.universe.chance
    pruned = prune(parts, _branch(host, parts), Policy(keep=chance.choice([1, 2]), now=chance.random() < 0.6))
    return f"{pruned.branch} from {pruned.after.floor} on"


def clean_up(host: Host, parts: GraphContext) -> str:
    """Prune main and sweep everything at once."""
    prune(parts, MAIN, Policy(keep=1, now=True))
    with _sweeping(host):
        swept = sweep(parts, older_than_s=0)
    return f"{len(swept.deleted)} files"


def compact(host: Host, parts: GraphContext) -> str:
    """Compact main's table."""
    return str(write(parts, MAIN, op.compact(parts, PERSON)).entry is not None)


def create_branch(host: Host, parts: GraphContext) -> str:
    """Create a branch, perhaps under a name that was deleted before."""
    return str(branches.create(parts, host.universe.chance.choice("bc")).number)


def delete_branch(host: Host, parts: GraphContext) -> str:
    """Delete a branch."""
    return str(branches.delete(parts, host.universe.chance.choice("bc")).number)


def merge(host: Host, parts: GraphContext) -> str:
    """Merge a branch into main."""
    source = host.universe.chance.choice("bc")
    with Graph(parts, Schemas(parts)) as graph:
        merged = graph.merge(source)
    return f"{source}: {merged.outcome} {merged.number}"


def create_tag(host: Host, parts: GraphContext) -> str:
    """Tag the head of a branch."""
    model = host.universe.model
    head = parts.log.live_head(_branch(host, parts))
    name = f"tag{len(model.entries)}"
    tags.create(parts, name, head)
    if name not in model.tags_deleted:  # by another host, before this one was told that it is there
        model.tags[name] = (head.branch, head.number, head.commit, host.universe.roots)
    return f"{name} is entry {head.number} of {head.branch}"


def delete_tag(host: Host, parts: GraphContext) -> str:
    """Take a tag back."""
    name = host.universe.chance.choice(tags.names(parts) or ["none"])
    host.universe.model.tags.pop(name, None)
    host.universe.model.tags_deleted.add(name)
    tags.delete(parts, name)
    return name


def hold_lease(host: Host, parts: GraphContext) -> str:
    """Hold a commit for a while and read it then."""
    universe = host.universe
    entry = parts.log.live_head(_branch(host, parts))
    begun_s = universe.scheduler.now_s
    with leased(parts, entry, _LEASE_S):
        universe.scheduler.switch(host.name, universe.chance.choice([1.0, 200.0, 500.0]))
        is_held = universe.scheduler.now_s - begun_s < _LEASE_S and universe.weather.root == "stays"
        if is_held:
            try:
                found = op.rows_at(replace(parts, tables=reopened(parts.tables)), PERSON, entry)
            except omnigraph.GraphError as fault:
                raise AssertionError(f"{host.name} holds entry {entry.number} of {entry.branch}") from fault
            assert found == universe.model.rows_of(entry.commit)
    return f"entry {entry.number} of {entry.branch}, held {is_held}"


WRITES = frozenset({insert, load, update})
ACTS: tuple[Act, ...] = (
    insert, insert, insert, load, load, update, sweep_files, sweep_files, sweep_files, prune_branch, prune_branch,
    clean_up, compact, create_branch, delete_branch, merge, create_tag, delete_tag, hold_lease,
)  # fmt: skip
DANGEROUS: tuple[Act, ...] = (
    sweep_files, sweep_files, sweep_files, clean_up, clean_up, prune_branch, insert, load, delete_branch, create_branch,
)  # fmt: skip
