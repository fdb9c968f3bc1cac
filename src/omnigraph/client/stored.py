"""Queries that a server keeps: called by name, their texts the operator's."""

from collections.abc import Mapping
from typing import Any

from omnigraph.api.params import json_params
from omnigraph.client.base import RemoteBase
from omnigraph.client.wire import segment
from omnigraph.client.writes import IF_COMMIT


class RemoteStoredQueries(RemoteBase):
    """What only a server has: queries that are stored with it."""

    def stored_queries(self) -> list[dict[str, Any]]:
        """The stored queries there are.

        Returns:
            list[dict[str, Any]]: each with its name, whether it writes, and its parameters.
        """
        return list(self._open().get("queries")["queries"])

    def invoke(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        commit: str | None = None,
        expect_mutation: bool | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Call a stored query or mutation.

        Args:
            name (str): which.
            params (Mapping[str, object] | None): values of its parameters.
            branch (str | None): where; `main` by default.
            commit (str | None): for a read, at this commit instead.
            expect_mutation (bool | None): refuse it where it is not what the caller takes it for.
            if_commit (str | None): for a mutation, only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): for a mutation, only if these tables are at these
                versions, by type key.
            idempotency_key (str | None): for a mutation, the same key again does nothing; where none is named, a new
                one is taken for this call.

        Returns:
            dict[str, Any]: of a read, its rows as `Result.to_json` has them; of a mutation, what came of it.

        Raises:
            NotFoundError: there is no such query, or whoever asks may not call it.
            InvalidRequestError: it is not what was expected, or a parameter does not fit.
            PreconditionError: the head is not `if_commit`.
        """
        body = {
            "params": json_params(params),
            "branch": branch,
            "snapshot": commit,
            "expect_mutation": expect_mutation,
            "expected_table_versions": None if expected_table_versions is None else dict(expected_table_versions),
        }
        path = f"queries/{segment(name)}"
        if if_commit is None:
            return dict(self._open().write(path, body, idempotency_key))
        return dict(self._open().write(f"{path}/if-graph-commit", body, idempotency_key, {IF_COMMIT: if_commit}))
