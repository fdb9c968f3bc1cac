"""Desired state of a cluster: the configuration and the files it names, as resources with digests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.clock import SystemClock
from omnigraph.cluster import addresses, digests, layout
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.config import read_config
from omnigraph.cluster.declared import Declared, DeclaredGraph
from omnigraph.cluster.diagnostics import Diagnostics, Outcome
from omnigraph.cluster.files import read_file
from omnigraph.cluster.stored_queries import check_queries, find_queries
from omnigraph.errors import GraphError, ParseError
from omnigraph.ids import UlidSource
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema
from omnigraph.policy import rules
from omnigraph.policy.read import PolicyError, read_rules


@dataclass(frozen=True, slots=True)
class Resource:
    """Desired resource."""

    address: Address  # unique name in the cluster
    digest: str  # digest of the content
    file: str | None = None  # source file, relative to the configuration folder
    body: bytes = field(default=b"", repr=False)  # content of the source file
    applies_to: tuple[str, ...] | None = None  # scopes of a policy
    embedding_provider: str | None = None  # provider of a graph
    embedding_profile: Mapping[str, str] | None = None  # settings of a provider
    external_blob_policy: Mapping[str, Any] | None = None  # allowed external blob locations of a graph

    def entry(self) -> dict[str, Any]:
        """Return the ledger entry."""
        found: dict[str, Any] = {"digest": self.digest}
        if self.applies_to is not None:
            found["applies_to"] = list(self.applies_to)
        for key in ("embedding_provider", "embedding_profile", "external_blob_policy"):
            if getattr(self, key) is not None:
                found[key] = getattr(self, key)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = {"address": str(self.address), "kind": self.address.kind.value, "digest": self.digest}
        return found if self.file is None else {**found, "path": self.file}


@dataclass(frozen=True, slots=True)
class Desired:
    """All desired resources."""

    resources: Mapping[str, Resource]  # by address, in creation order
    dependencies: tuple[tuple[str, str], ...]  # pairs of dependent and dependency
    schemas: Mapping[str, Schema] = field(default_factory=dict)  # parsed schemas by graph id, where parsing succeeded

    @property
    def digests(self) -> dict[str, str]:
        """Resource digests by address."""
        return {address: resource.digest for address, resource in self.resources.items()}

    @property
    def config_digest(self) -> str:
        """Digest of all resources, independent of how the configuration spells them."""
        return digests.of_values({address: resource.entry() for address, resource in self.resources.items()})

    def dependencies_json(self) -> list[dict[str, str]]:
        """Return the JSON form of the dependencies."""
        return [{"from": source, "to": target} for source, target in self.dependencies]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration folder that has been read."""

    folder: Path  # directory with the cluster.yaml
    declared: Declared  # values of cluster.yaml
    desired: Desired  # resources, with the content of the files it names

    @property
    def storage(self) -> str:
        """Storage root of the cluster."""
        return storage_location(self.folder, self.declared)


def read_configuration(folder: Path, diagnostics: Diagnostics) -> Configuration | None:
    """Read the configuration in a folder and every file it names."""
    declared = read_config(folder, diagnostics)
    return None if declared is None else Configuration(folder, declared, _desired(folder, declared, diagnostics))


def validate(folder: Path) -> Outcome:
    """Check the configuration in a folder without touching any storage."""
    diagnostics = Diagnostics()
    found = read_configuration(folder, diagnostics)
    resources = {} if found is None else found.desired.resources
    edges = [] if found is None else found.desired.dependencies_json()
    document = {
        "ok": diagnostics.is_ok,
        "config_dir": str(folder),
        "config_file": str(folder / layout.CONFIG_FILE),
        "resource_digests": {} if found is None else found.desired.digests,
        "resources": [resource.to_json() for resource in resources.values()],
        "dependencies": edges,
        "diagnostics": diagnostics.to_json(),
    }
    summary = f"cluster config valid: {len(resources)} resource(s), {len(edges)} dependency edge(s)"
    return Outcome(document, (summary if diagnostics.is_ok else "cluster config invalid",), tuple(diagnostics))


def read_location(folder: Path, diagnostics: Diagnostics) -> Configuration | None:
    """Read the configuration without the files it names: enough to locate the cluster."""
    declared = read_config(folder, diagnostics)
    return None if declared is None else Configuration(folder, declared, Desired({}, ()))


def _desired(folder: Path, declared: Declared, diagnostics: Diagnostics) -> Desired:
    resources: list[Resource] = []
    edges: list[tuple[Address, Address]] = []
    schemas: dict[str, Schema] = {}
    for name, profile in declared.providers.items():
        document = profile.to_document()
        resources.append(Resource(addresses.provider(name), digests.of_values(document), embedding_profile=document))
    for graph_id, graph in declared.graphs.items():
        found, schema = _graph(folder, graph_id, graph, diagnostics)
        resources += found
        if schema is not None:
            schemas[graph_id] = schema
        edges.append((addresses.schema(graph_id), addresses.graph(graph_id)))
        edges += [
            (resource.address, addresses.schema(graph_id)) for resource in found if resource.address.kind is Kind.QUERY
        ]
        if graph.embedding_provider is not None:
            edges.append((addresses.graph(graph_id), addresses.provider(graph.embedding_provider)))
    for name, policy in declared.policies.items():
        kind = rules.Kind.SERVER if policy.is_for_cluster else rules.Kind.GRAPH
        path = f"policies.{name}.file"
        body = read_file(folder, policy.file, code="policy_file_missing", path=path, diagnostics=diagnostics)
        if body is None:
            continue
        try:
            read_rules(body.decode(), kind=kind)
        except PolicyError as mistake:
            diagnostics.error("policy_invalid", path, f"{policy.file}: {mistake}")
            continue
        resources.append(
            Resource(addresses.policy(name), digests.of_bytes(body), policy.file, body, applies_to=policy.applies_to)
        )
        if not policy.is_for_cluster:
            edges += [(addresses.policy(name), addresses.graph(graph_id)) for graph_id in policy.applies_to]
    resources.sort(key=lambda resource: resource.address.order)
    edges.sort(key=lambda edge: (edge[0].order, edge[1].order))
    return Desired(
        {str(resource.address): resource for resource in resources},
        tuple((str(source), str(target)) for source, target in edges),
        schemas,
    )


def _graph(
    folder: Path, graph_id: str, declared: DeclaredGraph, diagnostics: Diagnostics
) -> tuple[list[Resource], Schema | None]:
    path = f"graphs.{graph_id}"
    queries = find_queries(folder, declared.queries, path=f"{path}.queries", diagnostics=diagnostics)
    schema_body = read_file(
        folder, declared.schema, code="schema_file_missing", path=f"{path}.schema", diagnostics=diagnostics
    )
    schema = None if schema_body is None else parse_schema(schema_body, declared.schema, f"{path}.schema", diagnostics)
    check_queries(queries, schema, graph=graph_id, diagnostics=diagnostics)
    blobs = declared.external_blobs
    if blobs is not None and not blobs["allow"]:
        message = "no place is allowed, so no blob may lie outside"
        diagnostics.warning("external_blob_ingress_default_deny", f"{path}.external_blobs", message)
    found = [
        Resource(addresses.query(graph_id, query.name), digests.of_bytes(query.body), query.file, query.body)
        for query in queries.values()
    ]
    if schema_body is not None:
        own = Resource(addresses.schema(graph_id), digests.of_bytes(schema_body), declared.schema, schema_body)
        found.append(own)
        found.append(
            Resource(
                addresses.graph(graph_id),
                digests.of_graph(
                    schema=own.digest,
                    queries={
                        resource.address.name: resource.digest
                        for resource in found
                        if resource.address.kind is Kind.QUERY
                    },
                    provider=declared.embedding_provider,
                    external_blobs=blobs,
                ),
                embedding_provider=declared.embedding_provider,
                external_blob_policy=blobs,
            )
        )
    return found, schema


def parse_schema(body: bytes, file: str, path: str, diagnostics: Diagnostics) -> Schema | None:
    """Parse a schema file; None if it is invalid, which the diagnostics then say."""
    try:
        return accept(body.decode(), ids=UlidSource(SystemClock()))
    except ParseError as mistake:
        code = "schema_parse_error" if mistake.stage == "parse" else "schema_catalog_error"
        diagnostics.error(code, path, f"{file}: {mistake}")
    except GraphError as mistake:
        diagnostics.error("schema_catalog_error", path, f"{file}: {mistake}")
    return None


def storage_location(folder: Path, declared: Declared) -> str:
    """Return the storage root: the configured one, or the configuration folder."""
    chosen = declared.storage
    if chosen is None:
        return str(folder.resolve())
    return chosen if "://" in chosen else str((folder / Path(chosen).expanduser()).resolve())


def is_config_folder(root: str) -> bool:
    """True if an address names a folder with a cluster.yaml."""
    return "://" not in root and (Path(root).expanduser() / layout.CONFIG_FILE).is_file()
