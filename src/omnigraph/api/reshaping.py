"""Giving a graph another schema, wherever it is: what that is called, what it takes, and what it means.

How it is done is the matter of a graph that is open (`graph_writes.py`) and of one on a server (`client`).
"""

from abc import ABC, abstractmethod

from omnigraph.api.receipts import SchemaApplied
from omnigraph.language.schema import plan
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.said import schema_request


class Reshaping(ABC):
    """Another schema for a branch: what would be done, and doing it."""

    def schema_plan(
        self, text: str, *, branch: str = MAIN_BRANCH, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        """What applying a schema text would do; nothing is written.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too: where something is, earlier
                commits of the branch are pruned in the same step. Other branches and tags keep what they name.
            validated (bool): plan changes too that are right only where the data allows them.

        Returns:
            SchemaPlan: the steps, those that cannot be made among them.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a rename hint names nothing, or something it cannot mean.
            NotFoundError: there is no such branch.
        """
        schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        steps = plan(self._schema_now(branch), text, validated=validated)
        return steps.with_data_loss() if allow_data_loss else steps

    def schema_apply(
        self,
        text: str,
        *,
        branch: str = MAIN_BRANCH,
        allow_data_loss: bool = False,
        validated: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> SchemaApplied:
        """Give a branch another schema, as one commit. Older commits keep theirs; other branches too, until merged.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too: where something is, earlier
                commits of the branch are pruned in the same step. Other branches and tags keep what they name.
            validated (bool): make changes too that are right only where the data allows them, having looked.
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more; see `mutate`.

        Returns:
            SchemaApplied: the steps, and the commit; no commit where nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a change cannot be made.
            ConstraintError: the data does not allow a change; it says how many entities are in the way.
            ConflictError: others keep changing the branch.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
        """
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        return self._schema_apply(text, branch, options, allow_data_loss=allow_data_loss, validated=validated)

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _schema_now(self, branch: str) -> Schema: ...

    @abstractmethod
    def _schema_apply(
        self, text: str, branch: str, options: WriteOptions, *, allow_data_loss: bool, validated: bool
    ) -> SchemaApplied: ...
