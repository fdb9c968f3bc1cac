"""Schema migration steps with the amount of data they lose."""

from dataclasses import dataclass
from typing import Any

from omnigraph.model.schema_change import Step
from omnigraph.model.schema_change_document import dump_step, load_steps


@dataclass(frozen=True, slots=True)
class CostedStep:
    """A migration step and the amount of data it loses.

    Attributes:
        step: the migration step itself.
        rows_lost: rows of a dropped type; 0 for every other step.
        values_lost: rows with a value for a dropped property; 0 for every other step.
    """

    step: Step
    rows_lost: int = 0
    values_lost: int = 0

    def __str__(self) -> str:
        if self.rows_lost:
            return f"{self.step}: loses {self.rows_lost} {_plural(self.rows_lost, 'row')}"
        if self.values_lost:
            return f"{self.step}: loses {self.values_lost} {_plural(self.values_lost, 'value')}"
        return str(self.step)

    def to_dict(self) -> dict[str, Any]:
        """Serialize the step: its fields, a sentence, and the losses."""
        return dump_step(self.step) | {
            "text": str(self.step),
            "rows_lost": self.rows_lost,
            "values_lost": self.values_lost,
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> "CostedStep":
        """Deserialize the result of `to_dict`."""
        [step] = load_steps({"steps": [document]})
        return cls(step, document["rows_lost"], document["values_lost"])


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
