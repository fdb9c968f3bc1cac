"""The lines of a graph's history, wherever it is: compared, brought together, undone.

What that is called, takes and means is here; how it is done, in `graph_lines.py` and in `client`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from omnigraph.api.at_commit import At
from omnigraph.api.choosing import Resolutions, choices_of
from omnigraph.api.receipts import MergeResult, RevertResult
from omnigraph.branch.arguments import checked, first_and_last
from omnigraph.branch.entity_change import ChangeFilter, change_filter
from omnigraph.branch.merge.choices import Choices
from omnigraph.branch.point import Point
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.transaction.options import WriteOptions

# What tells the difference of two states, where the graph is.
Compared = TypeVar("Compared")


@dataclass(frozen=True, slots=True)
class MergeWanted:
    """What is to be merged, and how.

    Attributes:
        source: the branch brought in.
        into: the branch changed.
        choices: how it decides.
        preview: work it out and write nothing.
        delete_branch: delete the source afterwards.
        if_source_commit: only if this is still the source's head commit.
        engine: where it is found out what each side did.
    """

    source: str
    into: str
    choices: Choices
    preview: bool
    delete_branch: bool
    if_source_commit: str | None
    engine: str


class Lines(ABC, Generic[At, Compared]):
    """Branches compared and merged, commits undone, and who did what."""

    @checked
    def diff(
        self,
        older: str | Point | At,
        newer: str | Point | At,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        merge_base: bool = False,
        engine: str = "auto",
    ) -> Compared:
        """What lies between any two states: every entity that differs, as it was and as it is.

        Args:
            older (str | Point | Snapshot): a branch, tag or commit by name, `BRANCH@NUMBER`, `BRANCH@TIME`, a `Point`,
                or a snapshot.
            newer (str | Point | Snapshot): likewise; it need not be younger, nor of the same branch.
            kinds (Iterable[str]): only `node` or `edge`; all by default.
            types (Iterable[str]): only types of these names; all by default.
            ops (Iterable[str]): only `insert`, `update` or `delete`; all by default.
            merge_base (bool): compare `newer` with the commit where both parted, not with `older` itself: what `newer`
                did since, and nothing of what `older` did. See `changes_of`.
            engine (str): where rows are compared: `local`, `spark`, or `auto`, which takes Spark for types of which
                very much differs. A server decides itself.

        Returns:
            Diff: the changes, read as they are asked for; as objects or dictionaries, and of an open graph as Arrow
                tables.

        Raises:
            NotFoundError: there is no such state.
            InvalidRequestError: a kind, operation or engine is none.
            ConflictError: with `merge_base`, the two have no commit in common of which anything is kept.
        """
        return self._diff(older, newer, change_filter(kinds, types, ops), engine, merge_base=merge_base)

    @checked
    def changes_of(
        self,
        branch: str,
        *,
        against: str = MAIN_BRANCH,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        engine: str = "auto",
    ) -> Compared:
        """What a branch changed since it parted from another: what a merge would bring, for review.

        What happened on `against` meanwhile does not show. To compare the two heads instead, use `diff`.

        Args:
            branch (str): the branch that is reviewed.
            against (str): the branch it would be merged into.
            kinds (Iterable[str]): only `node` or `edge`; all by default.
            types (Iterable[str]): only types of these names; all by default.
            ops (Iterable[str]): only `insert`, `update` or `delete`; all by default.
            engine (str): where rows are compared; see `diff`.

        Returns:
            Diff: from the merge base to the head of the branch.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: a kind, operation or engine is none.
            ConflictError: the two have no commit in common of which anything is kept.
        """
        return self._diff(against, branch, change_filter(kinds, types, ops), engine, merge_base=True)

    @checked
    def merge(
        self,
        source: str,
        *,
        into: str = MAIN_BRANCH,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        base: str | None = None,
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
            prefer (str | None): `source` or `target`: whose row to take where both changed it; by property, whose
                cells, and only those that both changed.
            resolutions (Resolutions | None): by type and id, `"source"`, `"target"`, a row, None to delete, or
                `{"$properties": {name: "source", "target" or {"value": …}}}` for some of its properties; or by type a
                list of `{"id": …, "decision": …}`, where `"key"` may stand for the id; or a JSON file of either. Under
                `"schema"`, by item (`node:Person`, `node:Person.age`, or `*` for all), the side whose schema to take.
            base (str | None): the commit to compare both sides with, for branches whose own base is gone
                (`merge_base_missing`); by default the last commit that both have in common.
            preview (bool): work it out and write nothing; conflicts are returned.
            delete_branch (bool): delete the source afterwards, unless it has moved on. That this fails is told, and
                the merge stands.
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is still the target's head commit: `head` of the preview that was
                looked at.
            if_source_commit (str | None): only if this is still the source's: `source_commit` of the preview.
            prune_previous (bool): in the same step, show earlier commits of the target no more; see `mutate`.
            engine (str): where it is found out what each side did: `local`, `spark`, or `auto`, which takes Spark for
                very much; then only what changed comes here, and not the tables. A server decides itself.

        Returns:
            MergeResult: the outcome and the commit.

        Raises:
            MergeConflictError: the branches did what cannot both stand; `conflicts` lists all of it. Nothing changed.
            NotFoundError: there is no such branch.
            InvalidRequestError: both are one branch, or a choice or engine means nothing.
            ConflictError: the target keeps moving, its schema was changed meanwhile, or the last commit that both
                branches have in common is not kept (`merge_base_missing`).
            PreconditionError: a head is not the commit named.
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
            OutcomeUnknownError: of a graph on a server, the answer was lost; merging again does nothing if it was done.
        """
        wanted = MergeWanted(
            source=source,
            into=into,
            choices=choices_of(by, prefer, resolutions, base),
            preview=preview,
            delete_branch=delete_branch,
            if_source_commit=if_source_commit,
            engine=engine,
        )
        options = WriteOptions(actor=actor, message=message, if_commit=if_commit, prune_previous=prune_previous)
        return self._merge(wanted, options)

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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
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
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
        """
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        first, last = first_and_last(commit)
        return self._revert(first, last, branch, options)

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
        return self._log_of(type_name, entity_id, branch, limit)

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
        return self._blame(type_name, entity_id, branch)

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _diff(
        self, older: str | Point | At, newer: str | Point | At, wanted: ChangeFilter, engine: str, *, merge_base: bool
    ) -> Compared: ...

    @abstractmethod
    def _merge(self, wanted: MergeWanted, options: WriteOptions) -> MergeResult: ...

    @abstractmethod
    def _revert(self, first: str, last: str | None, branch: str, options: WriteOptions) -> RevertResult: ...

    @abstractmethod
    def _log_of(self, type_name: str, entity_id: str, branch: str, limit: int | None) -> list[EntityEvent]: ...

    @abstractmethod
    def _blame(self, type_name: str, entity_id: str, branch: str) -> Blame: ...
