"""The lines of a graph's history: compared, brought together, undone."""

from collections.abc import Iterable

from omnigraph.api import diffing, lineage, merging, reverting
from omnigraph.api.choosing import Resolutions, choices_of
from omnigraph.api.diffing import State
from omnigraph.api.graph_reads import GraphReads
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.receipts import MergeResult, RevertResult
from omnigraph.branch.arguments import checked
from omnigraph.branch.diff import Diff
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.transaction.options import WriteOptions


class GraphLines(GraphReads):
    """Branches compared and merged, commits undone, and who did what."""

    @checked
    def diff(
        self,
        older: State,
        newer: State,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        engine: str = "auto",
    ) -> Diff:
        """What lies between any two states: every entity that differs, as it was and as it is.

        Args:
            older (State): a branch, tag or commit by name, `BRANCH@NUMBER`, `BRANCH@TIME`, a `Point`, or a snapshot.
            newer (State): likewise; it need not be younger, nor of the same branch.
            kinds (Iterable[str]): only `node` or `edge`; all by default.
            types (Iterable[str]): only types of these names; all by default.
            ops (Iterable[str]): only `insert`, `update` or `delete`; all by default.
            engine (str): where rows are compared: `local`, `spark`, or `auto`, which takes Spark for types of which
                very much differs.

        Returns:
            Diff: the changes, read as they are asked for; as objects, dictionaries or Arrow tables.

        Raises:
            NotFoundError: there is no such state.
            InvalidRequestError: a kind, operation or engine is none.
        """
        return diffing.diff(self._open(), older, newer, kinds=kinds, types=types, ops=ops, engine=engine)

    # -- merging ------------------------------------------------------------------------------------------------------

    @checked
    def merge(
        self,
        source: str,
        *,
        into: str = MAIN_BRANCH,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        preview: bool = False,
        delete_branch: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        if_source_commit: str | None = None,
        prune_previous: bool = False,
        engine: str = "auto",
    ) -> MergeResult:
        """Bring what one branch did since it parted from another into that other one, as one commit.

        Args:
            source (str): the branch brought in; it does not change.
            into (str): the branch changed.
            by (str): `row`: a row that both sides changed, differently, is a conflict; `property`: only where both
                changed one of its properties.
            prefer (str | None): `source` or `target`: whose row to take where both changed it.
            resolutions (Resolutions | None): by type and id, `"source"`, `"target"`, a row, or None to delete; or a
                JSON file that says so.
            preview (bool): work it out and write nothing; conflicts are returned.
            delete_branch (bool): delete the source afterwards, unless it has moved on. That this fails is told, and
                the merge stands.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is still the target's head commit: `head` of the preview that was
                looked at.
            if_source_commit (str | None): only if this is still the source's: `source_commit` of the preview.
            prune_previous (bool): in the same step, show earlier commits of the target no more; see `mutate`.
            engine (str): where it is found out what each side did: `local`, `spark`, or `auto`, which takes Spark for
                very much; then only what changed comes here, and not the tables.

        Returns:
            MergeResult: the outcome and the commit.

        Raises:
            MergeConflictError: the branches did what cannot both stand; `conflicts` lists all of it. Nothing changed.
            NotFoundError: there is no such branch.
            InvalidRequestError: both are one branch, or a choice or engine means nothing.
            ConflictError: the target keeps moving, or its schema was changed meanwhile.
            PreconditionError: a head is not the commit named.
            PermissionDeniedError: the graph was opened read-only.
        """
        return merging.merge(
            self._open(),
            self._schemas,
            source,
            into,
            choices=choices_of(by, prefer, resolutions),
            preview=preview,
            delete_branch=delete_branch,
            engine=engine,
            options=WriteOptions(actor=actor, message=message, if_commit=if_commit, prune_previous=prune_previous),
            if_source_commit=if_source_commit,
        )

    # -- undoing and asking who did it --------------------------------------------------------------------------------

    @checked
    def revert(
        self,
        commit: str | tuple[str, str],
        *,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> RevertResult:
        """Undo what a commit, or a range of commits, did to entities, as a new commit.

        Args:
            commit (str | tuple[str, str]): a commit by its id; or the first and the last of a range, both included.
            branch (str): where.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more; see `mutate`.

        Returns:
            RevertResult: the commit; none where everything is as before already.

        Raises:
            RevertConflictError: entities were changed since, the schema was, or a rule would be broken; it lists all.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: the range is none, or it is the first commit of all.
            ConflictError: the branch keeps moving.
            PermissionDeniedError: the graph was opened read-only.
        """
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        return reverting.revert(self._open(), self._schemas, commit, branch, options)

    @checked
    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH, limit: int | None = None
    ) -> list[EntityEvent]:
        """What happened to one entity, newest first.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            entity_id (str): its id.
            branch (str): on whose line; a merge tells what it brought in.
            limit (int | None): at most so many; all by default.

        Returns:
            list[EntityEvent]: commits with what they did to it; empty where there never was such an entity.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return lineage.log_of(self.snapshot(branch=branch), self._open(), type_name, entity_id, limit)

    @checked
    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH) -> Blame:
        """Which commit last set each property of an entity; what a merge brought in is told of its own commit.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            entity_id (str): its id.
            branch (str): at whose head.

        Returns:
            Blame: a commit for every property, the one that made the entity, and the one that changed it last.

        Raises:
            NotFoundError: there is no such type, entity or branch.
        """
        return lineage.blame(self.snapshot(branch=branch), self._open(), type_name, entity_id)
