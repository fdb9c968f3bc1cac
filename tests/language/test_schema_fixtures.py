"""The text fixtures of the schema language: what they show is what happens.

A fixture is a sentence saying what it shows, then sections. `=== schema` is the text looked at; the others say what is
expected of it:

    canonical    the canonical layout, which has the same tree and does not change when laid out again
    facts        types, properties and constraints with their numbers
    error        the whole error
    same shape   another text that says the same
    other shape  another text that says something else
    warnings     what lint says
    next         the text the graph is to have next, for the sections below
    plan         the steps there, in words
    json         the steps there, as JSON
    diagnostics  what is worth knowing about the next text, or about the first where there is no next
"""

import json
from pathlib import Path

import pytest
from tests.support.text_fixtures import expected_of, sections_of, sentences, unheard

from omnigraph.errors import GraphError, ParseError
from omnigraph.language import schema as language
from omnigraph.language.schema.resolve import assign_first_ids
from omnigraph.model.schema import Annotation, EdgeType, InterfaceType, NodeType, Schema
from omnigraph.model.schema_change import Diagnostic, SchemaPlan, format_constraint
from omnigraph.model.schema_change_document import dump_plan, load_steps
from omnigraph.model.schema_document import from_bytes, shape_digest, to_bytes

FOLDER = Path(__file__).parent / "schema"
FIXTURES = sorted(FOLDER.rglob("*.txt"))
SOURCES = Path(language.__file__).parent


class FixedIds:
    def new(self) -> str:
        return "01J00000000000000000000000"


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
def test_what_a_fixture_shows_is_what_happens(path: Path) -> None:
    for name, body in expected_of(path, given=("schema", "next")).items():
        assert shown(name, sections_of(path)).rstrip("\n") == body.rstrip("\n"), name


def shown(name: str, sections: dict[str, str]) -> str:
    """What happens, in the words of a section."""
    text = sections["schema"]
    match name:
        case "canonical":
            return canonical(text)
        case "facts":
            return facts(accepted(text))
        case "error":
            return error(text, sections.get("next"))
        case "same shape" | "other shape":
            is_same = shape_digest(accepted(text)) == shape_digest(accepted(sections[name]))
            return sections[name] if is_same == (name == "same shape") else "it is otherwise"
        case "warnings":
            return "\n".join(f"{each.line}:{each.column} {each.code} {each.message}" for each in lint(text))
        case "plan":
            return "\n".join(str(step) for step in planned(sections).steps) or "no schema changes"
        case "json":
            document = dump_plan(planned(sections).steps)
            assert load_steps(json.loads(json.dumps(document))) == planned(sections).steps
            return json.dumps(document, indent=2)
        case "diagnostics":
            return "\n".join(f"{each.entity} {each.code}: {each.message}" for each in diagnostics(sections))
        case _:
            raise AssertionError(f"no section is called {name}")


def accepted(text: str) -> Schema:
    schema = language.accept(text, ids=FixedIds())
    assert from_bytes(to_bytes(schema)) == schema
    return schema


def canonical(text: str) -> str:
    laid_out = language.format(text)
    assert language.parse(laid_out) == language.parse(text)
    assert language.format(laid_out) == laid_out
    return laid_out


def lint(text: str) -> tuple[language.Finding, ...]:
    return language.lint(language.parse(text))


def planned(sections: dict[str, str]) -> SchemaPlan:
    before = accepted(sections["schema"])
    plan = language.plan(before, sections["next"])
    assert from_bytes(to_bytes(plan.schema)) == plan.schema
    if plan.supported:
        again = language.plan(plan.schema, sections["next"])
        assert again.is_empty, "a schema that was just applied has nothing left to do"
        assert again.schema is plan.schema
    return plan


def diagnostics(sections: dict[str, str]) -> tuple[Diagnostic, ...]:
    if "next" in sections:
        return planned(sections).diagnostics
    return assign_first_ids(language.check(language.parse(sections["schema"])), FixedIds()).diagnostics


def error(text: str, following: str | None) -> str:
    try:
        schema = accepted(text)
        if following is not None:
            language.plan(schema, following)
    except ParseError as raised:
        return str(raised)
    except GraphError as raised:
        return f"{raised}\n{raised.details['report']}"
    return "no error"


def facts(schema: Schema) -> str:
    lines = []
    for each in schema.types:
        lines.append(header(each))
        for part in each.properties:
            notes = [f"  {part.name} #{part.property_id} {part.type}", *part.constraints]
            if part.embed:
                notes.append(f"from {part.embed.source.property_name} #{part.embed.source.property_id}")
                notes.append(f"by {part.embed.model or 'any model'}")
            if not part.declared_directly:
                notes.append("inherited")
            notes += [f"for {link.owner_type_name}.{link.property_name} #{link.property_id}" for link in part.satisfies]
            notes += [annotation(found) for found in part.annotations]
            lines.append(" ".join(notes))
        if not isinstance(each, InterfaceType):
            lines += [f"  {format_constraint(constraint)}" for constraint in each.constraints]
    return "\n".join([*lines, f"next #{schema.next_id}"])


def annotation(found: Annotation) -> str:
    arguments = [found.value, *(f"{key}={value}" for key, value in found.kwargs)]
    return f"@{found.name}({', '.join(each for each in arguments if each is not None)})"


def header(each: InterfaceType | NodeType | EdgeType) -> str:
    words = [f"{each.kind} {each.name} #{each.type_id}"]
    if isinstance(each, NodeType):
        words += [f"table #{each.table_id}", *(f"is {found.type_name} #{found.type_id}" for found in each.implements)]
    if isinstance(each, EdgeType):
        most = "*" if each.cardinality.max is None else each.cardinality.max
        words.append(f"table #{each.table_id} {each.from_type.type_name} #{each.from_type.type_id} -> ")
        words[-1] += f"{each.to_type.type_name} #{each.to_type.type_id} {each.cardinality.min}..{most}"
    if not isinstance(each, InterfaceType):
        words += [annotation(found) for found in each.annotations]
    return " ".join(words)


# Sentences that no schema text can bring about; those about plans have tests of their own.
_ELSEWHERE = (
    "a checked edge has two ends",
    "renaming interfaces *",
    "schema migration contains an unclassified semantic IR change",
)
# Where the sentences of the schema language stand; those of lint's catalogue of codes are not said to anybody.
_SPEAKING = (
    "parse",
    "parse_type",
    "parse_annotation",
    "check",
    "check_annotations",
    "check_constraints",
    "check_catalog",
    "expand",
    "hints",
    "resolve",
    "plan",
)


@pytest.mark.parametrize("module", _SPEAKING)
def test_every_sentence_the_language_can_say_is_shown_by_a_fixture(module: str) -> None:
    found = unheard(SOURCES / f"{module}.py", FIXTURES, ("error", "plan", "json", "warnings", "diagnostics"))
    assert set(found) <= set(_ELSEWHERE)


def test_the_search_for_sentences_finds_messages_and_hints() -> None:
    found = sentences(SOURCES / "expand.py")

    assert "node * implements unknown interface '*'" in found
    assert "* and * declare `*` differently" in found
