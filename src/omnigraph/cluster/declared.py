"""Values of cluster.yaml; files it names are not opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """Embedding provider."""

    kind: str  # protocol, such as `openai`
    base_url: str | None = None  # endpoint; None for the default of the protocol
    model: str | None = None  # model name; None for the default of the protocol
    api_key: str | None = None  # variable that holds the key, as `${NAME}`; None if no key is needed

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
    """Location of a graph's queries; one of the three fields is set."""

    folder: str | None = None  # directory whose .gq files are read
    files: tuple[str, ...] = ()  # paths of .gq files
    named: Mapping[str, str] = field(default_factory=dict)  # path by query name


@dataclass(frozen=True, slots=True)
class DeclaredGraph:
    """Graph of cluster.yaml."""

    schema: str  # path of the schema file
    queries: QueryFiles = QueryFiles()  # location of the stored queries
    embedding_provider: str | None = None  # provider that embeds texts in queries
    # allowed external blob locations, in the form of `ExternalBlobPolicy`
    external_blobs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredPolicy:
    """Policy of cluster.yaml."""

    file: str  # path of the policy file
    applies_to: tuple[str, ...]  # graph ids, or `cluster` alone

    @property
    def is_for_cluster(self) -> bool:
        """True if the policy governs the cluster itself."""
        return self.applies_to == ("cluster",)


@dataclass(frozen=True, slots=True)
class Declared:
    """Contents of cluster.yaml."""

    name: str | None = None  # label of the cluster
    storage: str | None = None  # storage root; None for the configuration folder
    uses_lock: bool = True  # whether commands take the lock
    providers: Mapping[str, DeclaredProvider] = field(default_factory=dict)  # embedding providers by name
    graphs: Mapping[str, DeclaredGraph] = field(default_factory=dict)  # by graph id
    policies: Mapping[str, DeclaredPolicy] = field(default_factory=dict)  # by policy name
