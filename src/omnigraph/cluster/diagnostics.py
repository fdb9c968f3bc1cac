"""What there is to say about a cluster: codes for programs, sentences for people."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


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
        return not any(each.severity is Severity.ERROR for each in self._all)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._all)

    def to_json(self) -> list[dict[str, str]]:
        """The wire form."""
        return [each.to_json() for each in self._all]


class StoppedError(Exception):
    """A command cannot go on; what there is to say has been said in its diagnostics."""
