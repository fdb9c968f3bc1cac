"""Texts that carry a place: what was put in comes out, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.branch.cursor import Carried, decode, encode, sound_payload
from omnigraph.errors import InvalidRequestError

CURSOR = Carried.FEED_CURSOR
PAYLOADS = st.dictionaries(st.sampled_from(["at", "graph", "life"]), st.integers() | st.text(max_size=20))


@given(payload=PAYLOADS)
def test_what_was_put_in_comes_out(payload: dict[str, object]) -> None:
    text = encode(CURSOR, payload)
    assert decode(CURSOR, text) == payload
    assert "=" not in text


@given(payload=PAYLOADS, place=st.integers(min_value=0), other=st.sampled_from("AZaz09-_=!é"))
def test_a_text_with_one_other_letter_is_refused(payload: dict[str, object], place: int, other: str) -> None:
    text = encode(CURSOR, payload)
    at = place % len(text)
    changed = text[:at] + other + text[at + 1 :]
    if changed == text:
        return
    with pytest.raises(InvalidRequestError, match=r"\Achange cursor rejected: invalid change feed cursor "):
        decode(CURSOR, changed)


@pytest.mark.parametrize("what", [each for each in Carried if each is not CURSOR])
def test_a_text_for_something_else_is_refused_by_name(what: Carried) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        decode(CURSOR, encode(what, {}))
    assert str(refused.value) == f"change cursor rejected: a {what} cannot be used as a change feed cursor"


@pytest.mark.parametrize("fault", [KeyError("at"), TypeError(), ValueError()])
def test_a_payload_without_what_it_must_have_is_refused(fault: Exception) -> None:
    with pytest.raises(InvalidRequestError) as refused, sound_payload(CURSOR):
        raise fault
    assert str(refused.value) == "change cursor rejected: invalid change feed cursor payload"
