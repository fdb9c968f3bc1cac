"""Importing the libraries below us in less time than they take by themselves."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Hidden(MetaPathFinder):
    """Says of a library that it is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  (as the import system calls it)
        target: ModuleType | None = None,  # noqa: ARG002  (as the import system calls it)
    ) -> ModuleSpec | None:
        if fullname == self._name:
            raise ModuleNotFoundError(f"No module named '{fullname}'", name=fullname)
        return None


@contextmanager
def quick_imports(*, without: str | None = None) -> Iterator[None]:
    """Import quickly what is imported inside.

    No garbage is looked for meanwhile: thousands of new functions and classes would be gone through again and again,
    and all of them stay.

    Args:
        without: a library that others import only in order to ask whether somebody gave them one of its values. It is
            hidden while they ask, and can be imported afterwards.
    """
    hidden = None if without is None or without in sys.modules else _Hidden(without)
    collecting, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    if hidden is not None:
        sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        if hidden is not None:
            sys.meta_path.remove(hidden)
        if len(sys.modules) > known:
            gc.freeze()  # what was imported stays, and need not be looked at later either
        if collecting:
            gc.enable()
