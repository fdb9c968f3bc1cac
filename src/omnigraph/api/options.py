"""What may be chosen when a graph is made or opened, every default in sight."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobPolicy
from omnigraph.storage.external_store import ExternalStore
from omnigraph.storage.object_stores.s3 import S3Options

MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a graph is opened.

    Attributes:
        durability: on local disk, what an acknowledged write survives: "power" (losing power) or "process" (the
            death of the process; a power cut may take the newest commits; faster on XFS and journaled ext4). Chosen
            when a graph is made; who opens it later may promise more, never less.
        s3: how to reach a bucket; by default what the AWS_* variables say.
        external: for a store without conditional puts, what decides races instead, or its address. Everybody who writes
            must name the same one.
        auto_compact: compact the newest fragments of a table, in a thread of the open graph, once small writes have
            left many.
        tail_fragments_max: how many are not yet many.
        protection_s: for how long a commit keeps its data after it was made, even if it is pruned. 0 for not at all;
            the commit just superseded keeps it all the same.
        cache_bytes: how much reads may keep in memory of columns, indexes and adjacency.
        external_blobs: which places blobs may lie at that are not the graph's own; by default none.
        embeddings: variables like OMNIGRAPH_EMBED_PROVIDER that choose what makes vectors of texts in queries; by
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
