"""Footprint tokens: one by one and all at once."""

from hypothesis import given
from hypothesis import strategies as st

from omnigraph import limits
from omnigraph.model import footprint
from omnigraph.model.footprint import TokenKind
from omnigraph.transaction.write_set.pending import tokens


@given(st.lists(st.text(), min_size=limits.TOKENS_AT_ONCE_MIN), st.sampled_from(TokenKind))
def test_all_at_once_gives_the_tokens_that_one_by_one_gives(names: list[str], kind: TokenKind) -> None:
    assert tokens(kind, names) == footprint.tokens(kind, names)


def test_half_a_surrogate_pair_has_a_token_too() -> None:
    names = ["\ud800", *map(str, range(limits.TOKENS_AT_ONCE_MIN))]

    assert tokens(TokenKind.ID, names) == footprint.tokens(TokenKind.ID, names)


def test_names_that_look_alike_have_tokens_of_their_own() -> None:
    names = ["", "\0", "\0\0", "a", "a\0", "\0a", "ab", "ba", "A", "é", "e\u0301", *(f"x{n}" for n in range(100_000))]

    assert len(tokens(TokenKind.ID, names)) == len(names)


def test_one_name_has_another_token_in_every_kind() -> None:
    assert len(frozenset[int]().union(*(footprint.tokens(kind, ["ada"]) for kind in TokenKind))) == len(TokenKind)


def test_tokens_are_what_older_commits_have_written() -> None:
    """They are on disk: another function would miss conflicts with commits of an older release."""
    assert footprint.tokens(TokenKind.ID, ["ada"]) == {11614489378548658289}
    assert footprint.tokens(TokenKind.UNIQUE, ["email=ada@example.org"]) == {17814939065823179947}
