"""An external store in memory, for graphs whose writers agree outside the object store."""

from collections.abc import Sequence

from omnigraph.storage.external_store import ExternalEntry
from omnigraph.storage.object_store import ObjectExists


class Fence:
    """An external store in memory."""

    def __init__(self) -> None:
        self.locations: dict[tuple[str, str], str] = {}

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """Return the entry of an object, or None."""
        location = self.locations.get((root, path))
        return None if location is None else ExternalEntry(path, location)

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object."""
        if (root, path) in self.locations:
            raise ObjectExists("there is an entry already", path=path)
        self.locations[root, path] = staged

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Let an entry name another location, if it still names the expected one."""
        is_expected = self.locations.get((root, path)) == expected
        if is_expected:
            self.locations[root, path] = location
        return is_expected

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """Return the entries below a folder that still name a staged object."""
        found = [ExternalEntry(path, self.locations[root, path]) for path in self._below(root, prefix)]
        return [entry for entry in found if entry.location != entry.path]

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if it names the expected location."""
        entry = self.get(root, path)
        if entry is None or expected not in {None, entry.location}:
            return None
        del self.locations[root, path]
        return entry

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        for path in self._below(root, prefix):
            del self.locations[root, path]

    def close(self) -> None:
        """Hold nothing open."""

    def _below(self, root: str, prefix: str) -> list[str]:
        return sorted(path for at, path in self.locations if at == root and path.startswith(prefix))
