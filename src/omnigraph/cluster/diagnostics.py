"""What there is to say about a cluster: codes for programs, sentences for people."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Whether a command can succeed in spite of it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to say.

    Attributes:
        code: stable.
        severity: whether it is in the way.
        path: what it is about: a place in the configuration like `graphs.knowledge.schema`, or an address.
        message: a sentence.
    """

    code: str
    severity: Severity
    path: str
    message: str

    def to_json(self) -> dict[str, str]:
        """The wire form."""
        return {"code": self.code, "severity": self.severity.value, "path": self.path, "message": self.message}

    def __str__(self) -> str:
        """One line for people."""
        word = "ERROR" if self.severity is Severity.ERROR else "WARN"
        return f"{word} {self.code} {self.path}: {self.message}"


class Diagnostics:
    """What was said so far, in order."""

    def __init__(self, earlier: Iterable[Diagnostic] = ()) -> None:
        self._all = list(earlier)

    def error(self, code: str, path: str, message: str) -> None:
        """Say something that is in the way."""
        self._all.append(Diagnostic(code, Severity.ERROR, path, message))

    def warning(self, code: str, path: str, message: str) -> None:
        """Say something worth knowing."""
        self._all.append(Diagnostic(code, Severity.WARNING, path, message))

    @property
    def is_ok(self) -> bool:
        """Whether nothing is in the way."""
        return not any(diagnostic.severity is Severity.ERROR for diagnostic in self._all)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._all)

    def to_json(self) -> list[dict[str, str]]:
        """The wire form."""
        return [diagnostic.to_json() for diagnostic in self._all]


class StoppedError(Exception):
    """A command cannot go on; what there is to say has been said in its diagnostics."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command.

    Attributes:
        document: the wire form.
        summary: for people; without what there is to say, which follows.
        diagnostics: what there is to say.
    """

    document: Mapping[str, Any]
    summary: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Whether nothing was in the way."""
        return bool(self.document["ok"])

    def lines(self) -> tuple[str, ...]:
        """All lines for people."""
        return (*self.summary, *map(str, self.diagnostics))
