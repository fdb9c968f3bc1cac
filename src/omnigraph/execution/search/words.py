"""What the words of a text are: runs of letters and digits, without regard to case.

Texts and what is looked for in them go through the same functions, so they agree on every script.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values, joined, pc

_BETWEEN_WORDS = r"[^\p{L}\p{N}\p{M}]+"
_BETWEEN_ASCII_WORDS = "[^a-z0-9]+"


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some texts.

    Attributes:
        words: of all texts, one after the other.
        counts: how many each text has; none where it is null.
    """

    words: Values
    counts: npt.NDArray[np.int32]


def words_of(texts: Values) -> Words:
    """The words of texts, in their order.

    Args:
        texts (Values): strings; null has no words.

    Returns:
        Words: each in lower case, in its composed form.
    """
    parts = [_words(texts.slice(start, _STEP)) for start in range(0, len(texts), _STEP)]
    if not parts:
        return Words(pa.nulls(0, pa.string()), np.zeros(0, dtype=np.int32))
    return Words(joined([part.words for part in parts]), np.concatenate([part.counts for part in parts]))


def words_in(text: str) -> list[str]:
    """The words of one text."""
    if text.isascii():
        # The same, without the cost of a kernel for a few words.
        return _ASCII_WORDS.findall(text.lower())
    found: Any = words_of(pa.array([text], pa.string())).words.to_pylist()
    return found  # type: ignore[no-any-return]  # Arrow's kernels have no types


_ASCII_WORDS = re.compile("[a-z0-9]+")


# Texts are taken apart so many at a time: what is made on the way is several times as large as they are.
_STEP = limits.SEARCH_TEXTS_AT_ONCE


def _words(texts: Values) -> Words:
    plain: Any = texts
    between = _BETWEEN_ASCII_WORDS
    if not pc.all(pc.string_is_ascii(plain), skip_nulls=True, min_count=0).as_py():
        # One letter can be spelled in several ways: as one character, or as a letter and its accent.
        plain = pc.utf8_normalize(plain, form="NFKC")
        between = _BETWEEN_WORDS
    spaced = pc.replace_substring_regex(pc.utf8_lower(plain), pattern=between, replacement=" ")
    split = pc.split_pattern(pc.utf8_trim(spaced, characters=" "), pattern=" ")
    lengths = pc.list_value_length(split).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    words = split.flatten()
    empty = pc.equal(words, "")
    if pc.any(empty).as_py():
        # A text without any word is split into one empty one.
        kept = pc.invert(empty)
        owners = np.repeat(np.arange(len(texts)), lengths)[kept.to_numpy(zero_copy_only=False)]
        lengths = np.bincount(owners, minlength=len(texts)).astype(np.int32)
        words = words.filter(kept)
    return Words(words, lengths)
