"""Long histories, made quickly."""

from dataclasses import replace

from omnigraph import ids
from omnigraph.errors import InternalError
from omnigraph.model.change import NO_CHANGES
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.model.footprint import Footprint
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Done


def grow_history(parts: GraphContext, depth: int, *, branch: str = MAIN) -> None:
    """Put entries that change nothing until the branch's log is `depth` long: what empty loads would leave.

    Args:
        depth: how many entries the log then has.
        branch: whose log.
    """
    head = parts.log.live_head(branch)
    while head.number < depth:
        entry = replace(
            head,
            commit=ids.after(head.commit, parts.ids.new()),
            number=head.number + 1,
            kind=CommitKind.LOAD,
            parent=head.head_commit,
            created_at_us=max(head.created_at_us, parts.clock.now_us()),
            changes=NO_CHANGES,
            footprint=Footprint(),
            digests={},
        )
        outcome = parts.log.put(entry, after=head)
        if not isinstance(outcome, Done):
            raise InternalError("somebody else writes the log that is to be grown")
        head = outcome.entry
