"""What came of a command: a document for programs, lines for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.cluster.diagnostics import Diagnostic


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
