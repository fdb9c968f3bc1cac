import re
from pathlib import Path

import pytest

from omnigraph import limits

BOUNDS = {name: value for name, value in vars(limits).items() if name.isupper()}


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_a_positive_number(name: str) -> None:
    value = BOUNDS[name]
    assert isinstance(value, int | float)
    assert not isinstance(value, bool)
    assert value > 0


def test_bounds_that_belong_together_agree() -> None:
    assert limits.PUBLISH_BACKOFF_MS_MIN < limits.PUBLISH_BACKOFF_MS_MAX
    assert limits.STORE_RETRY_BACKOFF_MS_MIN < limits.STORE_RETRY_BACKOFF_MS_MAX
    assert limits.PUBLISH_ATTEMPTS_EAGER < limits.PUBLISH_ATTEMPTS_MAX
    assert limits.WHOLE_MAP_EVERY_ENTRIES <= limits.CHECKPOINT_ENTRIES
    # A writer must be able to miss beats without being taken for dead.
    assert limits.INTENT_HEARTBEAT_S * 3 <= limits.INTENT_STALE_S
    assert limits.INLINE_FOOTPRINT_TOKENS_MAX < limits.FOOTPRINT_TOKENS_MAX


def test_no_bound_is_named_twice() -> None:
    source = Path(limits.__file__).read_text(encoding="utf-8")
    named = re.findall(r"^([A-Z][A-Z0-9_]*) =", source, re.MULTILINE)
    assert sorted(named) == sorted(set(named))
    assert set(named) == set(BOUNDS)
