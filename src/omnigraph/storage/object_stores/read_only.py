"""A store that is only looked at."""

from collections.abc import Iterator, Sequence
from typing import NoReturn

from omnigraph.storage.object_store import Listed, ObjectStore, StoreRefused


class ReadOnlyStore:
    """Passes reads on and refuses every write."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    @property
    def uri(self) -> str:
        """Where the root is."""
        return self._inner.uri

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        return self._inner.get(path)

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        return self._inner.list(prefix, limit=limit)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix`, in order."""
        return self._inner.list_folders(prefix)

    def put(self, path: str, body: bytes) -> None:  # noqa: ARG002
        """Refused."""
        self._refuse("write", path)

    def put_if_absent(self, path: str, body: bytes) -> None:  # noqa: ARG002
        """Refused."""
        self._refuse("create", path)

    def copy(self, source: str, target: str) -> None:  # noqa: ARG002
        """Refused."""
        self._refuse("write", target)

    def delete(self, path: str) -> None:
        """Refused."""
        self._refuse("delete", path)

    def delete_prefix(self, prefix: str) -> None:
        """Refused."""
        self._refuse("delete", prefix)

    def make_durable(self, paths: Sequence[str]) -> None:
        """Refused: there is nothing this store could have written."""
        self._refuse("sync", paths[0] if paths else "")

    def prove_put_if_absent(self) -> None:
        """Refused: a graph that is only read needs no proof."""
        self._refuse("prove conditional puts on", "")

    def _refuse(self, verb: str, path: str) -> NoReturn:
        raise StoreRefused(f"cannot {verb} {path!r}: {self.uri} was opened read-only", path=path)
