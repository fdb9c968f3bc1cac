"""What several common ancestors come to, for one row, against the plain rule of the models."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.branch.merge.base import Ancestors, virtual_rows
from omnigraph.branch.merge.three_way import Image
from omnigraph.testing import ancestor_model as base_model

# Ancestors of each shape: two with one commit between them, three with one for each two, two with two between them.
SHAPES: dict[str, tuple[Ancestors, dict[int, tuple[int, ...]]]] = {
    "two": (Ancestors((0, 1), {(0, 1): Ancestors((2,))}), {0: (2,), 1: (2,), 2: ()}),
    "two, nothing between": (Ancestors((0, 1)), {0: (), 1: ()}),
    "three": (
        Ancestors((0, 1, 2), {(0, 1): Ancestors((3,)), (0, 2): Ancestors((3,)), (1, 2): Ancestors((3,))}),
        {0: (3,), 1: (3,), 2: (3,), 3: ()},
    ),
    "two over two": (
        Ancestors((0, 1), {(0, 1): Ancestors((2, 3), {(2, 3): Ancestors((4,))})}),
        {0: (2, 3), 1: (3, 2), 2: (4,), 3: (4,), 4: ()},
    ),
}
# No row, or its one cell.
VALUES = (None, 0, 1, 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_combination_of_values_comes_to_what_the_plain_rule_says(shape: str) -> None:
    ancestors, parents = SHAPES[shape]
    combinations = list(product(VALUES, repeat=len(parents)))
    ids = pa.array([str(place) for place in range(len(combinations))])
    images = [
        Image(pa.table({"id": ids, "x": pa.array(values, pa.int32())}), np.array([each is not None for each in values]))
        for values in zip(*combinations, strict=True)
    ]
    found = virtual_rows(ids, ancestors, images)
    cells = found.image.rows.column("x").to_pylist()
    commits = base_model.Commits(parents.__getitem__)
    for place, values in enumerate(combinations):
        rows = [None if value is None else {"x": value} for value in values]
        expected = commits.row(ancestors.places, rows.__getitem__)
        if isinstance(expected, base_model.Open):
            assert found.is_open[place], values
        elif expected is None:
            assert not found.image.there[place], values
        elif isinstance(expected["x"], base_model.Open):
            assert found.open_cells["x"][place] and not found.is_open[place], values
        else:
            assert (found.image.there[place], found.open_cells["x"][place], cells[place]) == (
                True,
                False,
                expected["x"],
            )


def test_ancestors_that_cannot_be_read_leave_open_what_depends_on_them() -> None:
    ancestors, _ = SHAPES["two over two"]
    values = [1, 0, 0, 0, 0]
    assert ancestors.latest(values) == (0,)
    assert ancestors.without({3}).latest(values) == (0, 1)
    assert ancestors.without({4}).latest(values) == (0,)
