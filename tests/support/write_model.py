"""A graph as dictionaries: what the store must show, said in the plainest way there is.

Every act is told twice: as an operation for the store, and as what it does to a dictionary. Tests do both and compare.
Types have the two columns of `tests.support.operations`; conditions are always on the value of `v`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support import operations as op
from tests.support.operations import TYPES, Rows

from omnigraph.model.commit import MAIN
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.write import Operation

Content = dict[str, dict[str, int | None]]
"""Per type key, the value of `v` by id."""


class TakenError(Exception):
    """What was to be new is there already; the store says so with a key conflict."""


@dataclass(frozen=True, slots=True)
class Act:
    """One write, as data.

    Attributes:
        text: for messages.
        operation: what the store is asked to do; makes it anew for each graph.
        apply: what it does to a dictionary, in place; raises `TakenError`, with nothing changed, if it must be refused.
    """

    text: str
    operation: Callable[[GraphContext], Operation]
    apply: Callable[[Content], None]

    def __repr__(self) -> str:
        return self.text


def insert(type_key: str, rows: Rows) -> Act:
    """Add entities that must be new."""

    def apply(content: Content) -> None:
        if rows.keys() & content[type_key].keys():
            raise TakenError
        content[type_key].update(rows)

    return Act(f"insert {type_key} {dict(rows)}", lambda _: op.insert(type_key, rows), apply)


def append(type_key: str, rows: Rows) -> Act:
    """Add entities under ids that nobody else makes."""

    def apply(content: Content) -> None:
        assert not rows.keys() & content[type_key].keys(), "an id that nobody else makes was made twice"
        content[type_key].update(rows)

    return Act(f"append {type_key} {dict(rows)}", lambda _: op.append(type_key, rows), apply)


def upsert(type_key: str, rows: Rows) -> Act:
    """Insert or replace."""
    return Act(
        f"upsert {type_key} {dict(rows)}",
        lambda _: op.upsert(type_key, rows),
        lambda content: content[type_key].update(rows),
    )


def load(rows: Mapping[str, Rows]) -> Act:
    """Insert or replace in several types; always makes a commit."""

    def apply(content: Content) -> None:
        for type_key, some in rows.items():
            content[type_key].update(some)

    return Act(f"load { ({key: dict(some) for key, some in rows.items()}) }", lambda _: op.upsert_many(rows), apply)


def update(type_key: str, ids: Sequence[str], to: int | None) -> Act:
    """Set `v` of the entities with these ids, where they exist."""

    def apply(content: Content) -> None:
        content[type_key].update(dict.fromkeys(content[type_key].keys() & set(ids), to))

    return Act(f"update {type_key} {list(ids)} to {to}", lambda _: op.update(type_key, ids, to), apply)


def update_where(type_key: str, value: int, to: int | None) -> Act:
    """Set `v` of every entity that has a certain value."""

    def apply(content: Content) -> None:
        content[type_key].update({each: to for each, v in content[type_key].items() if v == value})

    return Act(
        f"update {type_key} where v = {value} to {to}", lambda _: op.update_where(type_key, f"v = {value}", to), apply
    )


def delete(type_key: str, ids: Sequence[str]) -> Act:
    """Delete the entities with these ids, where they exist."""

    def apply(content: Content) -> None:
        for each in ids:
            content[type_key].pop(each, None)

    return Act(f"delete {type_key} {list(ids)}", lambda _: op.delete(type_key, ids), apply)


def delete_where(type_key: str, value: int) -> Act:
    """Delete every entity that has a certain value."""

    def apply(content: Content) -> None:
        content[type_key] = {each: v for each, v in content[type_key].items() if v != value}

    return Act(f"delete {type_key} where v = {value}", lambda _: op.delete_where(type_key, f"v = {value}"), apply)


def overwrite(type_key: str, rows: Rows) -> Act:
    """Make these rows the type's whole content."""

    def apply(content: Content) -> None:
        content[type_key] = dict(rows)

    return Act(f"overwrite {type_key} {dict(rows)}", lambda _: op.overwrite(type_key, rows), apply)


def add_type(type_key: str, rows: Rows) -> Act:
    """A type more, with its first rows."""

    def apply(content: Content) -> None:
        content[type_key] = dict(rows)

    return Act(f"add {type_key} {dict(rows)}", lambda parts: op.add_table(parts, type_key, rows), apply)


def remove_type(type_key: str) -> Act:
    """A type less."""

    def apply(content: Content) -> None:
        del content[type_key]

    return Act(f"remove {type_key}", lambda _: op.remove_table(type_key), apply)


def add_column(type_key: str, name: str) -> Act:
    """A column more, which is empty."""
    return Act(f"add column {name} of {type_key}", lambda parts: op.add_column(parts, type_key, name), _nothing)


def drop_column(type_key: str, name: str) -> Act:
    """A column less, of which no dictionary knew."""
    return Act(f"drop column {name} of {type_key}", lambda parts: op.drop_column(parts, type_key, name), _nothing)


def build_index(type_key: str) -> Act:
    """An index, which changes no answer."""
    return Act(f"index {type_key}", lambda parts: op.build_index(parts, type_key), _nothing)


def compact(type_key: str) -> Act:
    """Fragments put together, which changes no answer."""
    return Act(f"compact {type_key}", lambda parts: op.compact(parts, type_key), _nothing)


def both(first: Act, second: Act) -> Act:
    """Two acts in one commit, the second seeing what the first did."""

    def apply(content: Content) -> None:
        content.update(after(content, first, second))

    return Act(f"{first} and {second}", lambda parts: op.both(first.operation(parts), second.operation(parts)), apply)


def after(content: Content, *acts: Act) -> Content:
    """The content after some acts, one after the other.

    Args:
        content (Content): before; it is not changed.
        *acts (Act): what is done.

    Returns:
        Content: a new one, which shares nothing with the other.

    Raises:
        TakenError: one of them must be refused.
    """
    result = {type_key: dict(rows) for type_key, rows in content.items()}
    for act in acts:
        act.apply(result)
    return result


def _nothing(_: Content) -> None:
    """What changes no answer changes no dictionary."""


@dataclass(slots=True)
class ModelGraph:
    """A whole graph.

    Attributes:
        branches: what each live branch shows.
        commits: what each commit showed that anybody was told of, by its branch and number.
        tags: which of them each tag names.
    """

    branches: dict[str, Content] = field(default_factory=lambda: {MAIN: {key: {} for key in TYPES}})
    commits: dict[tuple[str, int], Content] = field(default_factory=dict)
    tags: dict[str, tuple[str, int]] = field(default_factory=dict)

    def committed(self, branch: str, number: int, content: Content) -> None:
        """A commit was made.

        Args:
            branch (str): on this branch.
            number (int): at this place of its log.
            content (Content): what the branch shows after it.
        """
        self.branches[branch] = content
        self.commits[branch, number] = after(content)

    def forked(self, name: str, number: int, source: str) -> None:
        """A branch was made.

        Args:
            name (str): of the new branch.
            number (int): of its first entry.
            source (str): the branch it was made from.
        """
        self.committed(name, number, after(self.branches[source]))
