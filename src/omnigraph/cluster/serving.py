"""Load the applied revision of a cluster for a server.

A graph with something missing, damaged or unfinished is quarantined with the reason, rather than served without its
policy or with half its queries.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.cluster import addresses, digests, layout
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.catalog import read_payloads
from omnigraph.cluster.config import read_config
from omnigraph.cluster.declared import DeclaredProvider
from omnigraph.cluster.desired import is_config_folder, storage_location
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.sidecars import Sidecars
from omnigraph.cluster.state import Entry, LedgerFaultError, State, graph_digest
from omnigraph.errors import FormatError, GraphError, InvalidRequestError, NotFoundError, UnavailableError
from omnigraph.policy import rules
from omnigraph.policy.policy import Policy
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobPolicy
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.open import open_store

_EMBED = "OMNIGRAPH_EMBED_"
_NOT_INSTALLED = "not_installed"
# Stored texts by address, or the error.
_Stored = Mapping[str, str | FormatError]
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """Graph of the applied revision."""

    id: str  # graph id
    uri: str  # storage address
    quarantine: str | None = None  # why it must not be served; None if it may
    queries: Mapping[str, str] = field(default_factory=dict)  # content of the query file, by query name
    policy: Policy | None = None  # access rules; None if no policy is bound to it
    provider: DeclaredProvider | None = None  # embedding provider for texts in queries; None to use the environment
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS  # allowed external blob locations


@dataclass(frozen=True, slots=True)
class AppliedRevision:
    """Applied revision of a cluster."""

    root: str  # storage root
    revision: int  # revision number of the ledger
    config_digest: str | None  # configuration that was applied completely; None if none was yet
    graphs: tuple[ServedGraph, ...]  # all graphs sorted by id, including quarantined ones
    policy: Policy | None = None  # access rules for the cluster itself; None if no policy is bound to it


def load_applied(root: str | os.PathLike[str], *, require_all: bool = False) -> AppliedRevision:
    """Load the applied revision of a cluster."""
    store = open_store(storage_root(root), read_only=True)
    state = ledger_state(store)
    pending = _read_unfinished(store)
    stored = read_payloads(store, state.digests)
    graphs = tuple(_graph(store.uri, state, stored, graph, pending.get(graph)) for graph in state.graphs())
    if not graphs:
        raise InvalidRequestError(
            f"the cluster at {store.uri} has no graphs; declare some, then run: omnigraph cluster apply",
            code="cluster_empty",
        )
    quarantined = [f"{graph.id}: {graph.quarantine}" for graph in graphs if graph.quarantine is not None]
    if len(quarantined) == len(graphs) or (quarantined and require_all):
        raise InvalidRequestError(
            f"the cluster at {store.uri} cannot be served: {'; '.join(quarantined)}", code="cluster_no_healthy_graphs"
        )
    try:
        own = _policy(state, stored, layout.CLUSTER_SCOPE, rules.Kind.SERVER)
    except FormatError as damage:
        raise InvalidRequestError(f"the cluster's own policy cannot be used: {damage}", code=damage.code) from None
    return AppliedRevision(store.uri, state.revision, state.config_digest, graphs, own)


def storage_root(root: str | os.PathLike[str]) -> str:
    """Resolve the storage root: the one of a folder's cluster.yaml, else the address itself."""
    address = os.fspath(root)
    if not is_config_folder(address):
        return address
    diagnostics = Diagnostics()
    folder = Path(address).expanduser()
    declared = read_config(folder, diagnostics)
    if declared is None:
        raise InvalidRequestError("; ".join(map(str, diagnostics)), code="invalid_cluster_yaml")
    return storage_location(folder, declared)


def ledger_state(store: ObjectStore) -> State:
    """Read the newest ledger state of a cluster."""
    try:
        stored = Ledger(store).read()
    except LedgerFaultError as fault:
        raise UnavailableError(str(fault), code=fault.code) from fault
    if not stored.exists:
        raise NotFoundError(
            f"there is no cluster at {store.uri}: it has no ledger; run: omnigraph cluster import",
            code="cluster_state_missing",
        )
    return stored.state


def embedding_environment(provider: DeclaredProvider, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables that select an embedding provider."""
    given = dict(os.environ if variables is None else variables)
    declared = {"PROVIDER": provider.kind, "BASE_URL": provider.base_url, "MODEL": provider.model}
    # Timeouts and mocking stay as the process sets them.
    chosen = {key: value for key, value in given.items() if key.removeprefix(_EMBED) not in declared}
    chosen |= {f"{_EMBED}{key}": value for key, value in declared.items() if value is not None}
    named = None if provider.api_key is None else _VARIABLE.fullmatch(provider.api_key)
    if named is not None:
        secret = given.get(named[1])
        if not secret:
            raise InvalidRequestError(
                f"{named[1]} is required for the {provider.kind} embedding provider", code="embedding_api_key_required"
            )
        for variable in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
            chosen[variable] = secret
    return chosen


def _read_unfinished(store: ObjectStore) -> dict[str, str]:
    try:
        pending, faults = Sidecars(store).read_all()
    except GraphError as fault:
        raise UnavailableError(f"the sidecars cannot be read: {fault}", code="recovery_sidecar_read_error") from fault
    if faults:
        path, reason = faults[0]
        raise UnavailableError(f"{path} cannot be read: {reason}", code="recovery_sidecar_read_error")
    return {sidecar.graph_id: f"{sidecar.kind} of {sidecar.started_at} was not finished" for sidecar in pending}


def _graph(root: str, state: State, stored: _Stored, graph: str, unfinished: str | None) -> ServedGraph:
    uri = layout.graph_uri(root, graph)
    if unfinished is not None:
        return ServedGraph(graph, uri, quarantine=f"cluster_recovery_pending: {unfinished}")
    try:
        entry = _entry(state, graph)
        return ServedGraph(
            graph,
            uri,
            queries={name: _text(stored, str(addresses.query(graph, name))) for name in state.queries(graph)},
            policy=_policy(state, stored, graph, rules.Kind.GRAPH),
            provider=_provider(state, entry.get("embedding_provider")),
            external_blobs=ExternalBlobPolicy.from_document(entry.get("external_blob_policy", {})),
        )
    except (FormatError, InvalidRequestError) as damage:
        if damage.code == _NOT_INSTALLED:
            raise  # the graph itself is not damaged
        return ServedGraph(graph, uri, quarantine=f"{damage.code}: {damage}")


def _entry(state: State, graph: str) -> Entry:
    entry = state.resources[str(addresses.graph(graph))]
    if entry["digest"] != graph_digest(state.resources, graph):
        raise FormatError("the digests in the ledger are inconsistent", code="external_blob_policy_digest_mismatch")
    return entry


def _text(stored: _Stored, address: str) -> str:
    found = stored[address]
    if isinstance(found, FormatError):
        raise found
    return found


def _policy(state: State, stored: _Stored, scope: str, kind: rules.Kind) -> Policy | None:
    bound = []
    for address, entry in sorted(state.resources.items()):
        parsed = addresses.parse(address)
        if parsed is None or parsed.kind is not Kind.POLICY:
            continue
        if "applies_to" not in entry:
            raise FormatError(f"the ledger has no bindings of {address}", code="policy_bindings_missing")
        if scope in entry["applies_to"]:
            bound.append(address)
    if len(bound) > 1:
        raise FormatError(f"{' and '.join(bound)} apply to the same scope", code="duplicate_policy_binding")
    if not bound:
        return None
    try:
        return Policy.parse(_text(stored, bound[0]), kind=kind)
    except InvalidRequestError as fault:
        if fault.code == _NOT_INSTALLED:
            raise
        raise FormatError(f"{bound[0]}: {fault}", code="policy_invalid") from None


def _provider(state: State, name: str | None) -> DeclaredProvider | None:
    if name is None:
        return None
    entry = state.resources.get(str(addresses.provider(name)))
    if entry is None:
        raise FormatError(f"there is no embedding provider '{name}'", code="embedding_provider_missing")
    profile = entry.get("embedding_profile")
    if not isinstance(profile, dict) or "kind" not in profile:
        raise FormatError(f"the ledger has no profile of provider '{name}'", code="embedding_provider_profile_missing")
    if digests.of_values(profile) != entry["digest"]:
        raise FormatError(
            f"provider '{name}' was changed after it was applied", code="embedding_provider_digest_mismatch"
        )
    return DeclaredProvider.from_document(profile)
