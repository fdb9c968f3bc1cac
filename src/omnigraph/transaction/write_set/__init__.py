"""The write set: the pending changes of one write, laid over committed rows, and how they are staged."""

from omnigraph.transaction.write_set.write_set import WriteSet

__all__ = ["WriteSet"]
