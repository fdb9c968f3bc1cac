"""Looking things up in a resolved schema."""

from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema


def library() -> Schema:
    return accept(
        """
        interface Named { name: String }
        node Author implements Named { name: String @key  born: Date? }
        node Book { title: String  zip: String  area: I32  @key(zip, area) }
        node Shelf {}
        edge Wrote: Author -> Book
        edge WroteAbout: Author -> Author
        """
    )


def test_a_node_is_found_by_its_exact_name_only() -> None:
    schema = library()

    assert (found := schema.node("Author")) is not None
    assert found.type_key == "node:Author"
    assert schema.node("author") is None
    assert schema.node("Wrote") is None


def test_an_edge_is_found_by_its_name_in_any_case() -> None:
    schema = library()

    assert schema.edge("WroteAbout") is schema.edge("wroteAbout") is schema.edge("WROTEABOUT")
    assert schema.edge("wrot") is None


def test_an_exact_edge_name_comes_before_a_folded_one() -> None:
    schema = library()

    assert (found := schema.edge("Wrote")) is not None
    assert found.name == "Wrote"


def test_an_entity_is_found_by_its_key() -> None:
    schema = library()

    assert schema.entity("node:Book") is schema.node("Book")
    assert schema.entity("edge:Wrote") is schema.edge("Wrote")
    assert schema.entity("edge:wrote") is None
    assert schema.entity("interface:Named") is None
    assert schema.entity("Book") is None


def test_the_key_is_listed_in_the_order_it_enters_ids() -> None:
    schema = library()
    book, author, shelf = schema.node("Book"), schema.node("Author"), schema.node("Shelf")
    assert book is not None and author is not None and shelf is not None

    assert [each.name for each in book.key] == ["area", "zip"]
    assert [each.name for each in author.key] == ["name"]
    assert shelf.key == ()
    assert (book.is_keyed, shelf.is_keyed) == (True, False)


def test_properties_are_found_by_name_and_listed_in_order() -> None:
    author = library().node("Author")
    assert author is not None

    assert [each.name for each in author.properties] == ["born", "name"]
    assert author.property_named("born") is author.properties[0]
    assert author.property_named("Born") is None


def test_the_edges_of_a_node_are_those_that_leave_or_reach_it() -> None:
    schema = library()

    assert [each.name for each in schema.edges_of("Author")] == ["Wrote", "WroteAbout"]
    assert [each.name for each in schema.edges_of("Book")] == ["Wrote"]
    assert schema.edges_of("Shelf") == ()


def test_types_come_as_interfaces_nodes_edges_and_entities_without_interfaces() -> None:
    schema = library()

    assert [each.name for each in schema.types] == ["Named", "Author", "Book", "Shelf", "Wrote", "WroteAbout"]
    assert [each.name for each in schema.entities] == ["Author", "Book", "Shelf", "Wrote", "WroteAbout"]
    assert (named := schema.interface("Named")) is not None
    assert named.type_key == "interface:Named"
    assert named.property_named("name") is not None
