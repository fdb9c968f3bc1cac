"""Addresses and differences: pure, so tried with anything."""

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cluster import addresses, digests, layout
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.catalog import payload_path
from omnigraph.cluster.changes import Disposition, Operation, blast_radius, block_dependents, compute_changes
from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.state import State, graph_digest
from omnigraph.storage.object_store import check_path

DIGEST = "0" * 64
IDS = st.sampled_from(["a", "b", "c"])
NASTY = st.text(alphabet=st.sampled_from(["a", ".", "/", "\\", "\x00", "-", "_", "%", " ", "é", "~", "$"]), max_size=8)


@given(st.one_of(st.text(max_size=20), st.builds("{}.{}.{}".format, st.sampled_from(list(Kind)), NASTY, NASTY)))
def test_whatever_is_taken_for_an_address_stays_in_its_folder(text: str) -> None:
    parsed = addresses.parse(text)
    if parsed is None:
        return
    assert str(parsed) == text
    path = payload_path(text, DIGEST)
    if path is not None:
        check_path(path)
        assert path.startswith(layout.RESOURCES)
        assert path.count("/") == (5 if parsed.kind is Kind.QUERY else 4)
    if parsed.graph:
        check_path(layout.graph_folder(parsed.graph))
        assert layout.graph_folder(parsed.graph).count("/") == 1


@given(st.lists(NASTY, min_size=1, max_size=3))
def test_names_that_would_lead_somewhere_else_are_no_addresses(parts: list[str]) -> None:
    for kind in ("graph", "schema", "query", "policy", "provider.embedding"):
        parsed = addresses.parse(".".join([kind, *parts]))
        assert parsed is None or not (set(str(parsed)) & set("/\\\x00% ~$é"))


@st.composite
def clusters(draw: st.DrawFn) -> Desired:
    """Some graphs with queries, providers and policies."""
    names = draw(st.sets(IDS))
    made: list[Resource] = []
    edges: list[tuple[str, str]] = []
    for name in sorted(draw(st.sets(IDS))):
        profile = {"kind": draw(st.sampled_from(["mock", "local"]))}
        made.append(Resource(addresses.provider(name), digests.of_values(profile), embedding_profile=profile))
    providers = [each.address.name for each in made]
    for name in sorted(names):
        schema = Resource(addresses.schema(name), digests.of_bytes(draw(st.binary(max_size=1))))
        queries = [
            Resource(addresses.query(name, query), digests.of_bytes(draw(st.binary(max_size=1))))
            for query in sorted(draw(st.sets(IDS)))
        ]
        provider = draw(st.sampled_from([None, *providers]))
        digest = digests.of_graph(
            schema=schema.digest,
            queries={each.address.name: each.digest for each in queries},
            provider=provider,
            external_blobs=None,
        )
        made += [Resource(addresses.graph(name), digest, embedding_provider=provider), schema, *queries]
        edges.append((f"schema.{name}", f"graph.{name}"))
        edges += [(str(each.address), f"schema.{name}") for each in queries]
        edges += [] if provider is None else [(f"graph.{name}", f"provider.embedding.{provider}")]
    bound = tuple(sorted(draw(st.sets(st.sampled_from(sorted(names)))))) if names else ()
    if bound:
        made.append(Resource(addresses.policy("p"), DIGEST, applies_to=bound))
        edges += [("policy.p", f"graph.{name}") for name in bound]
    made.sort(key=lambda each: each.address.order)
    return Desired({str(each.address): each for each in made}, tuple(edges))


def stored(desired: Desired) -> State:
    """The ledger after a configuration was applied wholly."""
    return State(1, desired.config_digest, {address: each.entry() for address, each in desired.resources.items()})


@given(clusters())
def test_what_was_applied_has_no_differences_from_itself(desired: Desired) -> None:
    assert compute_changes(desired, stored(desired)) == []
    for graph in stored(desired).graphs():
        assert graph_digest(stored(desired).resources, graph) == desired.resources[f"graph.{graph}"].digest


@given(clusters(), clusters())
def test_every_difference_is_found_once_and_in_an_order_that_can_be_carried_out(old: Desired, new: Desired) -> None:
    state = stored(old)
    changes = compute_changes(new, state, approved=state.graphs())
    found = {str(each.address): each.operation for each in changes}
    assert len(found) == len(changes)
    assert {address for address, how in found.items() if how is Operation.CREATE} == set(new.resources) - set(
        old.resources
    )
    assert {address for address, how in found.items() if how is Operation.DELETE} == set(old.resources) - set(
        new.resources
    )
    for address in set(new.resources) & set(old.resources):
        assert (address in found) == (new.resources[address].entry() != old.resources[address].entry())
    order = {str(each.address): at for at, each in enumerate(changes)}
    for source, target in new.dependencies:
        if found.get(source) is Operation.CREATE and found.get(target) is Operation.CREATE:
            assert order[target] < order[source]
    assert all(each.disposition in (Disposition.APPLIED, Disposition.DERIVED) for each in changes)


@given(clusters(), clusters())
def test_a_graph_that_nobody_approved_to_go_keeps_all_that_belongs_to_it(old: Desired, new: Desired) -> None:
    state = stored(old)
    changes = {str(each.address): each for each in compute_changes(new, state)}
    staying = [name for name in state.graphs() if f"graph.{name}" not in new.resources]
    for name in staying:
        assert changes[f"graph.{name}"].disposition is Disposition.BLOCKED
        provider = old.resources[f"graph.{name}"].embedding_provider
        owned = [address for address, each in old.resources.items() if each.address.graph == name]
        owned += [address for address, each in old.resources.items() if name in (each.applies_to or ())]
        for address in owned:
            if address in changes and address != f"graph.{name}":
                assert changes[address].disposition is Disposition.DEFERRED or name in changes[address].keeps
        if provider is not None and f"provider.embedding.{provider}" not in new.resources:
            assert changes[f"provider.embedding.{provider}"].disposition is Disposition.DEFERRED


@given(clusters(), IDS)
def test_what_depends_on_something_that_failed_waits_and_policies_never_do(desired: Desired, graph: str) -> None:
    changes = compute_changes(desired, State())
    held = block_dependents(changes, desired, [f"graph.{graph}"])
    for each in held:
        waits = each.address.graph == graph and each.address.kind in (Kind.SCHEMA, Kind.QUERY)
        waits = waits and f"graph.{graph}" in desired.resources
        assert (each.disposition is Disposition.BLOCKED) == waits


def test_a_change_touches_all_that_depends_on_it_directly_or_not() -> None:
    made = [Resource(Address(Kind.GRAPH, "g"), DIGEST), Resource(Address(Kind.SCHEMA, "g"), DIGEST)]
    edges = (("query.g.q", "schema.g"), ("schema.g", "graph.g"), ("policy.p", "graph.g"))
    desired = Desired({str(each.address): each for each in made}, edges)
    assert blast_radius(compute_changes(desired, State()), desired) == [
        {"resource": "graph.g", "affected": ["policy.p", "query.g.q", "schema.g"]},
        {"resource": "schema.g", "affected": ["query.g.q"]},
    ]
