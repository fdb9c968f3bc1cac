"""What may be asked of algorithms: what makes no sense is refused before any job runs."""

import math

import pytest

from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.analytics.validation import rounds, starts, texts, within


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0.5", True, None])
def test_a_share_is_a_number_from_nothing_to_all(value: object) -> None:
    within("damping", 0.85, 0, 1)
    with pytest.raises(InvalidRequestError, match="damping is a number from 0 to 1, and"):
        within("damping", value, 0, 1)


@pytest.mark.parametrize("value", [-1, 1.5, math.nan, "3", True, None])
def test_rounds_are_counted(value: object) -> None:
    rounds("rounds_max", 0)
    with pytest.raises(InvalidRequestError, match="rounds_max is a whole number of 0 or more, and"):
        rounds("rounds_max", value)


def test_one_name_may_stand_for_a_list_of_one() -> None:
    assert texts("Knows", "edge types") == ["Knows"]
    assert texts(("Knows", "Likes"), "edge types") == ["Knows", "Likes"]
    for wrong in (5, [5], None):
        with pytest.raises(InvalidRequestError, match="edge types are named by a list of texts, not by"):
            texts(wrong, "edge types")


@pytest.mark.parametrize("wrong", [["Ada"], ["ab"], [("Person",)], [("Person", 5)], [("Person", "Ada", "x")], [5]])
def test_a_node_to_start_from_is_its_type_and_its_id(wrong: object) -> None:
    assert starts([("Person", "Ada")]) == [("Person", "Ada")]
    with pytest.raises(InvalidRequestError, match="a node to start from is its type and its id"):
        starts(wrong)


@pytest.mark.parametrize("nothing", [[], (), None, "Person:Ada", 5])
def test_paths_start_somewhere(nothing: object) -> None:
    with pytest.raises(InvalidRequestError, match="name at least one node to start from"):
        starts(nothing)
