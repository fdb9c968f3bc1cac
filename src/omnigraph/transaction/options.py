"""What a caller may say about a write. Apart from the write itself: also those say it who only send it to a server."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.said import check_expected_versions, text_or_nothing


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a caller may say about a write.

    Attributes:
        actor: who.
        message: why.
        if_commit: only if this is the head commit.
        expected_table_versions: only if these tables are at these versions, by type key.
        idempotency_key: the same key again returns the first commit and does nothing.
        prune_previous: mark every earlier commit of the branch as pruned, in the same entry. Readers see them no more;
            their data goes when a later prune has passed them and a sweep has come by.
    """

    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    expected_table_versions: Mapping[str, int] | None = None
    idempotency_key: str | None = None
    prune_previous: bool = False

    def __post_init__(self) -> None:
        # Here, and not when it is published: hours of a load may lie between.
        text_or_nothing(self.actor, "the actor")
        text_or_nothing(self.message, "the message")
        if self.idempotency_key is not None and not isinstance(self.idempotency_key, str):
            raise InvalidRequestError(f"an idempotency key must be a text, got {type(self.idempotency_key).__name__}")
        check_expected_versions(self.expected_table_versions)
