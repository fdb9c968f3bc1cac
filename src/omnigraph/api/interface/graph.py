"""Reads and writes of a graph: the interface that `Graph` and `RemoteGraph` share."""

from collections.abc import Mapping
from typing import Protocol, Unpack

from omnigraph.api.interface.reads import ReadInterface
from omnigraph.api.load_options import LoadKeywords
from omnigraph.api.merge_options import Resolutions
from omnigraph.api.prepared import PreparedQuery
from omnigraph.api.results import LoadResult, MergeResult, MutationResult, RevertResult, SchemaApplied, WriteResult
from omnigraph.model.commit import MAIN
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteKeywords

NO_ROWS: Mapping[str, object] = {}


class GraphInterface(ReadInterface, Protocol):
    """What can be done with a graph anywhere. Every write becomes visible as one commit, or leaves no trace."""

    def mutate(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> MutationResult:
        """Run a mutation: all its statements in order, as one commit, or none of them.

        Args:
            query: a text in the query language, or a mutation from `prepare`.
            params: values of its parameters.
            name: which query of the text; needed only where there are several.
            branch: the branch it changes.

        Returns:
            How much changed, and the commit; no commit if nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query only reads, a parameter is missing, or a value does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: others changed what an update or delete had read (`read_set_conflict`), or a table is not at
                its expected version.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
        """
        ...

    def write(
        self,
        nodes: Mapping[str, object] = NO_ROWS,
        edges: Mapping[str, object] = NO_ROWS,
        *,
        mode: Mode | str = Mode.APPEND,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> WriteResult:
        """Write rows of any number of types as one commit.

        Args:
            nodes: rows by node type: an Arrow table, reader or stream, a pandas or polars frame, or a sequence of
                dictionaries. Columns are the properties, and `id` for types without a key.
            edges: rows by edge type, with the ids of the nodes in `from` and `to` (or `src` and `dst`). Edges may refer
                to nodes of the same call.
            mode: `append` refuses entities that exist; `merge` replaces them; `overwrite` makes the rows the whole
                content of the given types and leaves other types alone; `patch`, of an open graph only, sets the
                properties that each row names and keeps the others.
            branch: the branch it changes.

        Raises:
            InvalidRequestError: the mode, a type or a column is unknown, or a value does not fit.
            LimitError: the rows are more than a server takes at once.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), others changed what the write had read, or a
                table is not at its expected version.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
        """
        ...

    def load(self, data: object, *, mode: Mode | str, branch: str = MAIN, **load: Unpack[LoadKeywords]) -> LoadResult:
        """Load files of any size, with any number of types, as one commit, or leave no trace.

        A served graph takes JSON lines up to a size; use the graph's storage for CSV and Parquet files and for
        `rejects`. It ignores `engine`, `spark` and `progress`.

        Args:
            data: a file, folder, pattern or object store address, a sequence of these, bytes, or an open file. JSON
                lines name the types of their records; CSV and Parquet files hold rows of one type.
            mode: `append` refuses entities that exist; `merge` replaces them; `overwrite` makes the records the whole
                content of their types.
            branch: the branch it changes.

        Returns:
            Counts by type, and the commit.

        Raises:
            InvalidRequestError: a record is wrong; the message says which and why.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), others changed what the load had read, or a
                table is not at its expected version.
            LimitError: there are more bad records than `max_rejects` (`too_many_rejects`), or the files are larger
                than a server takes at once.
            NotFoundError: there is no such file, branch or type.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
        """
        ...

    def schema_plan(
        self, text: str, *, branch: str = MAIN, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        """Plan what applying a schema text would do, without writing anything.

        Args:
            text: the new schema.
            branch: the branch to be changed.
            allow_data_loss: erase what is dropped from history too: if anything is dropped, earlier commits of the
                branch are pruned in the same commit. Other branches and tags keep what they name.
            validated: include changes that depend on the data.

        Returns:
            The steps, including those that cannot be made.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a rename hint refers to nothing, or to something it cannot mean.
            NotFoundError: there is no such branch.
        """
        ...

    def schema_apply(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        validated: bool = False,
        **write: Unpack[WriteKeywords],
    ) -> SchemaApplied:
        """Change the schema of a branch, as one commit. Older commits keep theirs; other branches too, until merged.

        Does not support `expected_table_versions`.

        Args:
            text: the new schema.
            branch: the branch it changes.
            allow_data_loss: erase what is dropped from history too; see `schema_plan`.
            validated: make changes that depend on the data, after checking it.

        Returns:
            The steps, and the commit; no commit if nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a change cannot be made.
            ConstraintError: the data does not allow a change; the message says how many entities are in the way.
            ConflictError: others keep changing the branch.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
        """
        ...

    def merge(
        self,
        source: str,
        *,
        into: str = MAIN,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        base: str | None = None,
        preview: bool = False,
        delete_branch: bool = False,
        if_source_commit: str | None = None,
        engine: str = "auto",
        **write: Unpack[WriteKeywords],
    ) -> MergeResult:
        """Merge what one branch changed since it left another into that other branch, as one commit.

        Does not support `expected_table_versions` and `idempotency_key`: merging again changes nothing anyway.

        Args:
            source: the branch to merge; it does not change.
            into: the branch that is changed; `if_commit` is about its head: `head` of the preview that was reviewed.
            by: `row`: a row that both sides changed differently is a conflict; `property`: only where both changed
                one of its properties.
            prefer: `source` or `target`: whose row wins a conflict; by property, whose values, and only the disputed.
            resolutions: by type and id, `"source"`, `"target"`, a row, None to delete, or
                `{"$properties": {name: "source", "target" or {"value": …}}}` for some of its properties; or by type a
                list of `{"id": …, "decision": …}`, where `"key"` may stand for the id; or a JSON file of either. Under
                `"schema"`, by item (`node:Person`, `node:Person.age`, or `*` for all), the side whose schema wins.
            base: the commit to compare both sides with, for branches whose merge base is gone (`merge_base_missing`);
                by default the last commit that both have in common.
            preview: only compute the merge; conflicts are returned, nothing is written.
            delete_branch: delete the source afterwards, unless it has moved on. If that fails, the merge stands, and
                the result has the reason.
            if_source_commit: merge only if this is still the source's head: `source_commit` of the preview.
            engine: where the changes of each side are computed: `local`, `spark`, or `auto`, which takes Spark for
                very large ones; then only the changed rows come to this process. A server decides itself.

        Raises:
            MergeConflictError: the branches made changes that exclude each other; `conflicts` lists all. Nothing
                changed.
            NotFoundError: there is no such branch.
            InvalidRequestError: both are one branch, or an option is unknown.
            ConflictError: the target keeps moving, its schema was changed meanwhile, or the last commit that both
                branches have in common is not kept (`merge_base_missing`).
            PreconditionError: a head is not the commit named.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
            OutcomeUnknownError: the answer of a server was lost; merging again changes nothing if it was done.
        """
        ...

    def revert(
        self, commit: str | tuple[str, str], *, branch: str = MAIN, **write: Unpack[WriteKeywords]
    ) -> RevertResult:
        """Undo what a commit, or a range of commits, did to entities, as a new commit.

        Does not support `expected_table_versions`.

        Args:
            commit: the id of a commit; or the ids of the first and the last of a range, both included.
            branch: the branch it changes.

        Returns:
            The commit; none if everything is as before already.

        Raises:
            RevertConflictError: entities or the schema were changed since, or a rule would be broken; lists all.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: it is not a range, or the first commit of the graph.
            ConflictError: the branch keeps moving.
            PermissionDeniedError: the graph was opened read-only, or the server denies it.
        """
        ...
