"""Diagnostics and outcome of a command: codes for programs, sentences for people."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Whether a command can succeed in spite of a diagnostic."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Problem report."""

    code: str  # stable identifier
    severity: Severity  # errors make the command fail
    path: str  # location in the configuration like `graphs.knowledge.schema`, or the address of a resource
    message: str  # sentence for people

    def to_json(self) -> dict[str, str]:
        """Return the JSON form."""
        return {"code": self.code, "severity": self.severity.value, "path": self.path, "message": self.message}

    def __str__(self) -> str:
        """Return one line for people."""
        word = "ERROR" if self.severity is Severity.ERROR else "WARN"
        return f"{word} {self.code} {self.path}: {self.message}"


class Diagnostics:
    """Collect diagnostics in order."""

    def __init__(self, earlier: Iterable[Diagnostic] = ()) -> None:
        self._all = list(earlier)

    def error(self, code: str, path: str, message: str) -> None:
        """Add an error."""
        self._all.append(Diagnostic(code, Severity.ERROR, path, message))

    def warning(self, code: str, path: str, message: str) -> None:
        """Add a warning."""
        self._all.append(Diagnostic(code, Severity.WARNING, path, message))

    @property
    def is_ok(self) -> bool:
        """True if there are no errors."""
        return not any(diagnostic.severity is Severity.ERROR for diagnostic in self._all)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._all)

    def to_json(self) -> list[dict[str, str]]:
        """Return the JSON form."""
        return [diagnostic.to_json() for diagnostic in self._all]


class StoppedError(Exception):
    """Command cannot continue; its diagnostics have the reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a command."""

    document: Mapping[str, Any]  # JSON form
    summary: tuple[str, ...]  # lines for people, without the diagnostics
    diagnostics: tuple[Diagnostic, ...] = ()  # problems found, in order

    @property
    def is_ok(self) -> bool:
        """True if the command succeeded."""
        return bool(self.document["ok"])

    def lines(self) -> tuple[str, ...]:
        """Return all lines for people."""
        return (*self.summary, *map(str, self.diagnostics))
