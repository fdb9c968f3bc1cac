"""What cluster.yaml says, as values: no file it names has been opened yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """A provider of embeddings.

    Attributes:
        kind: which protocol.
        base_url: where; None for the protocol's own.
        model: which; None for the protocol's own.
        api_key: the variable that holds the key, as `${NAME}`; None where no key is needed.
    """

    kind: str
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None

    def to_document(self) -> dict[str, str]:
        """As the ledger keeps it: never a key, only the name of the variable that holds it."""
        found = {"kind": self.kind, "base_url": self.base_url, "model": self.model, "api_key": self.api_key}
        return {key: value for key, value in found.items() if value is not None}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "DeclaredProvider":
        """Read back from the ledger."""
        optional = {key: str(document[key]) for key in ("base_url", "model", "api_key") if key in document}
        return DeclaredProvider(str(document["kind"]), **optional)


@dataclass(frozen=True, slots=True)
class QueryFiles:
    """Where a graph's queries are.

    Attributes:
        folder: a folder of them.
        files: or files.
        named: or a file for each name.
    """

    folder: str | None = None
    files: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredGraph:
    """A graph.

    Attributes:
        schema: the file of its schema.
        queries: where its queries are.
        embedding_provider: by which provider texts in its queries become vectors.
        external_blobs: places outside that its blobs may lie at, in the form of `ExternalBlobPolicy`.
    """

    schema: str
    queries: QueryFiles = QueryFiles()
    embedding_provider: str | None = None
    external_blobs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """A bundle of rules.

    Attributes:
        file: where it is.
        applies_to: graphs, or the cluster itself.
    """

    file: str
    applies_to: tuple[str, ...]

    @property
    def is_for_cluster(self) -> bool:
        """Whether it is about the cluster itself."""
        return self.applies_to == ("cluster",)


@dataclass(frozen=True, slots=True)
class Declared:
    """A whole cluster.yaml.

    Attributes:
        name: a label.
        storage: where the cluster lies; None for beside the file.
        uses_lock: whether commands take the lock.
        providers: of embeddings, by name.
        graphs: by id.
        policies: by name.
    """

    name: str | None = None
    storage: str | None = None
    uses_lock: bool = True
    providers: Mapping[str, DeclaredProvider] = field(default_factory=dict)
    graphs: Mapping[str, DeclaredGraph] = field(default_factory=dict)
    policies: Mapping[str, DeclaredPolicy] = field(default_factory=dict)
