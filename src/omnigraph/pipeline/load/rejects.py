"""Where records go that cannot be loaded: a file for each load, written before the load is visible.

Whoever finds the commit finds the file: had it been written later, a process that dies in between, or a disk that is
full by then, would leave a commit and no word of what is missing from it.
"""

import json
import os
from pathlib import Path

from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.load.problems import Located
from omnigraph.storage.input_files import is_remote, local_path


class RejectsFile:
    """The file of rejects of one load; its folder is made first, before hours of work."""

    def __init__(self, folder: "str | os.PathLike[str]", name: str) -> None:
        """Make the folder.

        Args:
            folder: where the file will be.
            name: what tells it from those of other loads.

        Raises:
            InvalidRequestError: there can be no file (`rejects_folder`).
        """
        text = os.fspath(folder)
        if is_remote(text):
            raise _cannot(text, "it must be a folder of this machine")
        self._folder = Path(local_path(text))
        self._file = self._folder / f"rejects-{name}.jsonl"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise _cannot(text, fault.strerror) from fault
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise _cannot(text, "nothing may be written there")

    def __str__(self) -> str:
        """Its path."""
        return str(self._file)

    def write(self, rejects: tuple[Located, ...]) -> None:
        """Write records down, one JSON object per line, in the place of what was written before.

        Args:
            rejects: the records.

        Raises:
            InvalidRequestError: they cannot be written (`rejects_folder`).
        """
        try:
            with self._file.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(reject.to_dict(), ensure_ascii=False) + "\n" for reject in rejects)
        except OSError as fault:
            self.discard()
            raise _cannot(str(self._folder), fault.strerror) from fault

    def discard(self) -> None:
        """Delete the file, if it is there: the load it tells of came to nothing."""
        self._file.unlink(missing_ok=True)


def _cannot(folder: str, why: str | None) -> InvalidRequestError:
    return InvalidRequestError(
        f"bad records cannot be put aside in {folder}: {why}; name another folder", code="rejects_folder"
    )
