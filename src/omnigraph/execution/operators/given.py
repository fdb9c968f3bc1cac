"""Where pipelines start."""

from collections.abc import Iterator

from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Operator
from omnigraph.execution.run import Run


class Start(Operator[Frame]):
    """One row without variables."""

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (a start takes nothing)
        """The one row."""
        yield Frame(run, 1, {})


class Given(Operator[Frame]):
    """The rows of the operator around."""

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (the port's signature; this one does not need it)
        """Those rows."""
        assert given is not None
        if given.size:
            yield given
