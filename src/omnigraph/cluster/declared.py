"""Values of cluster.yaml; files it names are not opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """Embedding provider.

    Attributes:
        kind: protocol, such as `openai`.
        base_url: endpoint; None for the default of the protocol.
        model: model name; None for the default of the protocol.
        api_key: variable that holds the key, as `${NAME}`; None if no key is needed.
    """

    kind: str
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None

    def to_document(self) -> dict[str, str]:
        """Return the ledger form, which has the name of the key's variable, never the key."""
        found = {"kind": self.kind, "base_url": self.base_url, "model": self.model, "api_key": self.api_key}
        return {key: value for key, value in found.items() if value is not None}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "DeclaredProvider":
        """Read the ledger form."""
        optional = {key: str(document[key]) for key in ("base_url", "model", "api_key") if key in document}
        return DeclaredProvider(str(document["kind"]), **optional)


@dataclass(frozen=True, slots=True)
class QueryFiles:
    """Location of a graph's queries; one of the three fields is set.

    Attributes:
        folder: directory whose .gq files are read.
        files: paths of .gq files.
        named: path by query name.
    """

    folder: str | None = None
    files: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredGraph:
    """Graph of cluster.yaml.

    Attributes:
        schema: path of the schema file.
        queries: location of the stored queries.
        embedding_provider: provider that embeds texts in queries.
        external_blobs: allowed external blob locations, in the form of `ExternalBlobPolicy`.
    """

    schema: str
    queries: QueryFiles = QueryFiles()
    embedding_provider: str | None = None
    external_blobs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """Policy of cluster.yaml.

    Attributes:
        file: path of the policy file.
        applies_to: graph ids, or `cluster` alone.
    """

    file: str
    applies_to: tuple[str, ...]

    @property
    def is_for_cluster(self) -> bool:
        """True if the policy governs the cluster itself."""
        return self.applies_to == ("cluster",)


@dataclass(frozen=True, slots=True)
class Declared:
    """Contents of cluster.yaml.

    Attributes:
        name: label of the cluster.
        storage: storage root; None for the configuration folder.
        uses_lock: whether commands take the lock.
        providers: embedding providers by name.
        graphs: by graph id.
        policies: by policy name.
    """

    name: str | None = None
    storage: str | None = None
    uses_lock: bool = True
    providers: Mapping[str, DeclaredProvider] = field(default_factory=dict)
    graphs: Mapping[str, DeclaredGraph] = field(default_factory=dict)
    policies: Mapping[str, DeclaredPolicy] = field(default_factory=dict)
