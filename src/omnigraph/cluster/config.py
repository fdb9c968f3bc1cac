"""Strict parser of cluster.yaml that reports all mistakes at once."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from omnigraph import yaml_document
from omnigraph.cluster import addresses, layout
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.declared import Declared, DeclaredGraph, DeclaredPolicy, DeclaredProvider, QueryFiles
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.fields import INVALID, Fields, plain
from omnigraph.errors import InvalidRequestError
from omnigraph.storage.external_blobs import ExternalBlobPolicy
from omnigraph.yaml_document import Entries, Items, Scalar, YamlDocumentError

_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_PROVIDERS = ("openai-compatible", "openai", "gemini", "mock", "local")
_WITHOUT_KEY = frozenset({"mock", "local"})
_STORES = ("", "file", "s3", "gs", "az", "memory")


def read_config(folder: Path, diagnostics: Diagnostics) -> Declared | None:
    """Read the cluster.yaml of a folder as far as it is valid; None if it is not a configuration at all."""
    if not folder.is_dir():
        diagnostics.error("config_dir_not_found", str(folder), "the folder does not exist")
        return None
    file = folder / layout.CONFIG_FILE
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8"
        diagnostics.error("cluster_config_read_error", layout.CONFIG_FILE, f"{file} cannot be read: {reason}")
        return None
    return read_text(text, diagnostics)


def read_text(text: str, diagnostics: Diagnostics) -> Declared | None:
    """Parse the text of a cluster.yaml; see `read_config`."""
    try:
        root = yaml_document.read(text)
    except YamlDocumentError as fault:
        code = fault.code if fault.code == "duplicate_yaml_key" else INVALID
        diagnostics.error(code, layout.CONFIG_FILE, str(fault))
        return None
    if not isinstance(root, Entries):
        diagnostics.error(INVALID, layout.CONFIG_FILE, "the file must be a mapping")
        return None
    fields = Fields(root, "", diagnostics)
    version = fields.scalar("version")
    if isinstance(version, bool) or version != 1:
        fields.wrong("version", "the version must be 1", code="unsupported_cluster_config_version")
        return None
    fields.only({"version", "metadata", "storage", "state", "providers", "graphs", "policies"})
    providers = _providers(fields.members("providers"))
    graphs = _graphs(fields.members("graphs"), providers)
    return Declared(
        name=_name(fields.members("metadata")),
        storage=_storage(fields),
        uses_lock=_uses_lock(fields.members("state")),
        providers=providers,
        graphs=graphs,
        policies=_policies(fields.members("policies"), graphs),
    )


def _name(metadata: Fields) -> str | None:
    metadata.only({"name"})
    if "name" not in metadata:
        return None
    name = metadata.scalar("name")
    if not isinstance(name, str) or not name.strip():
        metadata.wrong("name", "the name must be a text that is not blank", code="empty_metadata_name")
        return None
    return name


def _storage(fields: Fields) -> str | None:
    found = fields.scalar("storage")
    if "storage" not in fields:
        return None
    if not isinstance(found, str) or not found.strip():
        fields.wrong("storage", "the storage root must be an address or a path", code="invalid_storage_root")
        return None
    parts = urlsplit(found)
    if parts.scheme not in _STORES:
        fields.wrong("storage", f"unsupported storage scheme {parts.scheme}://", code="invalid_storage_root")
    elif parts.scheme in ("s3", "gs", "az") and (not parts.netloc or "@" in parts.netloc or parts.query):
        fields.wrong("storage", "an address has a bucket and a prefix, nothing else", code="invalid_storage_root")
    return found


def _uses_lock(state: Fields) -> bool:
    state.only({"backend", "lock"})
    backend = state.scalar("backend")
    if "backend" in state and backend != "cluster":
        state.wrong("backend", f"unknown backend '{backend}'; use cluster", code="unsupported_state_backend")
    lock = state.scalar("lock")
    if "lock" in state and not isinstance(lock, bool):
        state.wrong("lock", "must be true or false")
    return lock is not False


def _providers(fields: Fields) -> Mapping[str, DeclaredProvider]:
    fields.only({"embedding"})
    declared = fields.members("embedding")
    found = {}
    for name in declared:
        if not layout.is_name(name):
            declared.wrong(name, f"invalid provider name '{name}'", code="invalid_resource_id")
            continue
        provider = _provider(declared.members(name))
        if provider is not None:
            found[name] = provider
    return found


def _provider(fields: Fields) -> DeclaredProvider | None:
    fields.only({"kind", "base_url", "model", "api_key"})
    kind = fields.text("kind", required=True)
    base_url, model, key = fields.text("base_url"), fields.text("model"), fields.text("api_key")
    if kind is None:
        return None
    if kind not in _PROVIDERS:
        message = f"unknown embedding provider '{kind}' (expected {'|'.join(_PROVIDERS)})"
        fields.wrong("kind", message, code="invalid_embedding_provider")
        return None
    if base_url is not None and urlsplit(base_url).scheme not in ("http", "https"):
        fields.wrong("base_url", "must be an http(s) address", code="invalid_embedding_provider")
    if key is None and kind not in _WITHOUT_KEY:
        message = f"the provider {kind} needs a key: name the variable that holds it, like ${{OPENAI_API_KEY}}"
        fields.wrong("api_key", message, code="embedding_api_key_required")
    if key is not None and _VARIABLE.fullmatch(key) is None:
        # The text is not repeated, as it may be a key.
        message = "a key must not be in the file: name the variable that holds it, like ${OPENAI_API_KEY}"
        fields.wrong("api_key", message, code="embedding_api_key_inline")
        return None
    return DeclaredProvider(kind, base_url, model, key)


def _graphs(declared: Fields, providers: Mapping[str, DeclaredProvider]) -> Mapping[str, DeclaredGraph]:
    found = {}
    for name in declared:
        if not layout.is_graph_id(name):
            message = (
                f"invalid graph id '{name}': use at most 64 letters, digits and dashes, not 'policies' or 'cluster'"
            )
            declared.wrong(name, message, code="invalid_resource_id")
            continue
        fields = declared.members(name)
        fields.only({"schema", "queries", "embedding_provider", "external_blobs"})
        schema = fields.text("schema", required=True)
        provider = _reference(fields, Kind.PROVIDER, "embedding_provider", fields.text("embedding_provider"))
        if provider is not None and provider not in providers:
            message = f"there is no embedding provider '{provider}'"
            fields.wrong("embedding_provider", message, code="dangling_embedding_provider_reference")
        found[name] = DeclaredGraph(schema or "", _queries(fields), provider, _external_blobs(fields))
    return found


def _queries(fields: Fields) -> QueryFiles:
    match fields.value("queries"):
        case None:
            return QueryFiles()
        case Items():
            return QueryFiles(files=fields.texts("queries"))
        case Entries():
            return QueryFiles(named=_named_queries(fields.members("queries")))
        case Scalar():
            return QueryFiles(folder=fields.text("queries"))


def _named_queries(declared: Fields) -> Mapping[str, str]:
    found = {}
    for name in declared:
        if not layout.is_query_name(name):
            declared.wrong(name, f"invalid query name '{name}'", code="invalid_resource_id")
            continue
        fields = declared.members(name)
        fields.only({"file"})
        file = fields.text("file", required=True)
        if file is not None:
            found[name] = file
    return found


def _external_blobs(fields: Fields) -> Mapping[str, object] | None:
    if "external_blobs" not in fields:
        return None
    document = plain(fields.value("external_blobs"))
    if not isinstance(document, dict):
        fields.wrong("external_blobs", "must be a mapping with `allow`", code="invalid_external_blob_policy")
        return None
    try:
        return ExternalBlobPolicy.from_document(document).to_document()
    except InvalidRequestError as fault:
        fields.wrong("external_blobs", fault.message, code=fault.code)
        return None


def _policies(declared: Fields, graphs: Mapping[str, DeclaredGraph]) -> Mapping[str, DeclaredPolicy]:
    found: dict[str, DeclaredPolicy] = {}
    bound: dict[str, list[str]] = defaultdict(list)
    for name in declared:
        if not layout.is_name(name):
            declared.wrong(name, f"invalid policy name '{name}'", code="invalid_resource_id")
            continue
        fields = declared.members(name)
        fields.only({"file", "applies_to"})
        file = fields.text("file", required=True)
        scopes = _scopes(fields, graphs)
        for scope in scopes:
            bound[scope].append(name)
        if file is not None and scopes:
            found[name] = DeclaredPolicy(file, scopes)
    for scope, names in bound.items():
        if len(names) > 1:
            what = "the cluster" if scope == layout.CLUSTER_SCOPE else f"graph '{scope}'"
            message = f"{what} has the policies {' and '.join(names)}; there can be one"
            declared.wrong(names[-1], message, code="duplicate_policy_binding")
    return found


def _scopes(fields: Fields, graphs: Mapping[str, DeclaredGraph]) -> tuple[str, ...]:
    """Return the scopes of a policy: `cluster`, or graph ids in order."""
    listed = fields.texts("applies_to")
    if not listed:
        fields.wrong("applies_to", "name the graphs it is for, or cluster", code="policy_missing_applies_to")
        return ()
    scopes = {_reference(fields, Kind.GRAPH, "applies_to", text) for text in listed} - {None}
    if layout.CLUSTER_SCOPE in scopes and len(scopes) > 1:
        message = "a policy is for graphs or for the cluster, not both"
        fields.wrong("applies_to", message, code="policy_mixed_binding_kinds")
        return ()
    for scope in sorted(filter(None, scopes)):
        if scope != layout.CLUSTER_SCOPE and scope not in graphs:
            fields.wrong("applies_to", f"there is no graph '{scope}'", code="dangling_graph_reference")
    return tuple(sorted(filter(None, scopes)))


def _reference(fields: Fields, kind: Kind, key: str, text: str | None) -> str | None:
    """Resolve a reference, written with or without its kind, to a name."""
    if text is None or "." not in text:
        return text
    address = addresses.parse(text)
    if address is not None and address.kind is kind:
        return address.name or address.graph
    fields.wrong(key, f"'{text}' does not name a {kind.replace('_', ' ')}", code="wrong_kind_reference")
    return None
