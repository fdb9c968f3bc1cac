"""Processes that write to S3 and are meant to be killed: `python -m tests.support.killable_writers`.

Starting Python and importing everything takes longer than the write. So one process does that and then waits; for every
order it is given it splits off a child, which carries the order out and can be killed in the middle of it.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from tests.support.interleaving import REPOSITORY
from tests.support.s3_server import options_for
from tests.support.write_kinds import KINDS, opened

from omnigraph.storage.object_stores.forwarding import RetryingStore
from omnigraph.storage.object_stores.s3 import S3Options, S3Store
from omnigraph.transaction.graph_context import Settings


@dataclass(frozen=True, slots=True)
class Order:
    """One write.

    Attributes:
        endpoint: address of the S3 server, or of a proxy before it.
        bucket: where the graph is.
        prefix: likewise.
        kind: the name of one of the kinds of write.
        noted: whether it leaves an intent.
    """

    endpoint: str
    bucket: str
    prefix: str
    kind: str
    noted: bool

    @property
    def options(self) -> S3Options:
        """How to reach the server."""
        return options_for(self.endpoint)


class KillableWriters:
    """The process that waits for orders."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def carry_out(self, order: Order, *, born: Callable[[int], None]) -> int:
        """Let a child carry out an order.

        Args:
            order (Order): what to do.
            born (Callable[[int], None]): is told the child's process number while it works.

        Returns:
            int: how it ended: 0 if well, minus the signal's number if it was killed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        born(int(self._process.stdout.readline()))
        return int(self._process.stdout.readline())


@contextmanager
def killable_writers() -> Iterator[KillableWriters]:
    """Start the process; it ends with the block.

    Yields:
        KillableWriters: ready for orders.
    """
    with subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        yield KillableWriters(process)
        assert process.stdin is not None
        process.stdin.close()


def carry_out(order: Order) -> None:
    """Open the graph and do one kind of write.

    Args:
        order (Order): which, and where.
    """
    [kind] = [kind for kind in KINDS if kind.name == order.kind]
    store = RetryingStore(S3Store(order.bucket, order.prefix, options=order.options))
    kind.act(opened(store, settings=Settings(intent_rows_min=0) if order.noted else Settings()))


def main() -> None:
    """Split off a child for every line of the input; tell its number, and then how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                carry_out(Order(**json.loads(line)))
            except BaseException:  # noqa: BLE001  (the child must end here, whatever happens)
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
