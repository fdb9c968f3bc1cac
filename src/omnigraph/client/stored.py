"""Queries that a server keeps, called by name."""

from collections.abc import Mapping
from typing import Any

from omnigraph.api.params import json_params
from omnigraph.client.base import RemoteBase
from omnigraph.client.wire import IF_COMMIT, present, segment


class RemoteStoredQueries(RemoteBase):
    """What can be done with the stored queries of a graph on a server."""

    def stored_queries(self) -> list[dict[str, Any]]:
        """The stored queries there are.

        Returns:
            list[dict[str, Any]]: of each its name, its parameters, and whether it is a mutation.
        """
        found: list[dict[str, Any]] = self._open().get("queries")["queries"]
        return found

    def invoke(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        commit: str | None = None,
        expect_mutation: bool = False,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Call a stored query or mutation.

        Args:
            name (str): under which it is stored.
            params (Mapping[str, object] | None): values of its parameters.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead, for a query.
            expect_mutation (bool): whether it has to be a mutation; it is refused where it is the other kind.
            if_commit (str | None): for a mutation, only if this is the head commit of the branch.
            idempotency_key (str | None): for a mutation: the same key again does nothing more.

        Returns:
            dict[str, Any]: the answer as a JSON document: the rows of a query, or what a mutation changed.

        Raises:
            NotFoundError: there is no such query, or whoever asks may not call it.
            InvalidRequestError: it is of the other kind, or a value does not fit.
            PreconditionError: the head is another commit than `if_commit`.
        """
        body = present({"params": json_params(params), "branch": branch, "snapshot": commit})
        body["expect_mutation"] = expect_mutation
        path, wire = f"queries/{segment(name)}", self._open()
        answer: dict[str, Any]
        if not expect_mutation:
            answer = wire.post(path, body)
        elif if_commit is None:
            answer = wire.write(path, body, idempotency_key)
        else:
            answer = wire.write(f"{path}/if-graph-commit", body, idempotency_key, {IF_COMMIT: if_commit})
        return answer
