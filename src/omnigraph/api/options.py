"""Options for creating and opening a graph."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobPolicy
from omnigraph.storage.external_store import ExternalStore
from omnigraph.storage.object_stores.s3 import S3Options

MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """Options for creating and opening a graph.

    Attributes:
        durability: on local disk, what an acknowledged write survives: "power" (a power failure) or "process" (the
            end of the process; a power failure may lose the newest commits; faster on XFS and journaled ext4). Set
            when a graph is created; later it can be raised, never lowered.
        s3: connection settings of a bucket; by default from the AWS_* variables.
        external: for a store without conditional puts, the external store that decides races, or its address. All
            writers must use the same one.
        auto_compact: compact the newest fragments of a table in a background thread, after many small writes.
        tail_fragments_max: the number of fragments that starts a compaction.
        protection_s: minimum age of a commit before its data can be deleted after a prune. With 0, only the commit
            just superseded is protected.
        cache_bytes: memory for cached columns, indexes and adjacency.
        external_blobs: addresses outside of the graph that blobs may refer to; by default none.
        embeddings: variables like OMNIGRAPH_EMBED_PROVIDER that choose the embedding model for texts in queries; by
            default those of the process.
    """

    durability: str = "power"
    s3: S3Options | None = None
    external: ExternalStore | str | None = None
    auto_compact: bool = True
    tail_fragments_max: int = limits.TAIL_FRAGMENTS_MAX
    protection_s: float = limits.PROTECTION_WINDOW_S
    cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS
    embeddings: Mapping[str, str] | None = None
