"""What may be said to the data source: whatever nobody would heed is refused, with what may be meant."""

import pytest

from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.source.options import mode_of, one_of, refuse_unknown, whole_number

PERSON = {"graph": "people", "type": "Person"}


@pytest.mark.parametrize("reading", [True, False, None])
def test_options_are_known_in_any_case(reading: bool | None) -> None:
    refuse_unknown({"Graph": "people", "TYPE": "Person", "branch": "main"}, reading=reading)


@pytest.mark.parametrize(
    ("name", "reading", "told"),
    [
        ("typ", None, "there is no option 'typ'; did you mean `type`?"),
        ("versonasof", True, "there is no option 'versonasof'; did you mean `versionAsOf`?"),
        ("spil", False, "there is no option 'spil'; there is `actor`, `branch`, `engine`"),
        ("path", True, "a graph is named with the option 'graph', not with a path"),
        ("mode", True, "the option 'mode' is for writing: leave it out here"),
        ("timestampasof", False, "the option 'timestampAsOf' is for reading: leave it out here"),
    ],
)
def test_what_is_no_option_here_is_refused(name: str, reading: bool | None, told: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        refuse_unknown({**PERSON, name: "x"}, reading=reading)
    assert str(refused.value).startswith(told)
    assert refused.value.code == "unknown_option"


def test_the_mode_is_said_once() -> None:
    assert mode_of({}, overwrite=False) == "append"
    assert mode_of({"mode": "Merge"}, overwrite=False) == "merge"
    assert mode_of({"mode": "overwrite"}, overwrite=True) == "overwrite"
    with pytest.raises(
        InvalidRequestError, match="the option 'mode' says merge, and the frame is saved with mode over"
    ):
        mode_of({"mode": "merge"}, overwrite=True)
    with pytest.raises(InvalidRequestError, match="one of append, merge, overwrite, and 'mrege' is none of them"):
        mode_of({"mode": "mrege"}, overwrite=False)


def test_values_are_what_they_can_be() -> None:
    assert one_of({}, "engine", ("local", "spark")) is None
    assert one_of({"engine": "LOCAL"}, "engine", ("local", "spark")) == "local"
    with pytest.raises(
        InvalidRequestError, match="the option 'prunePrevious' is one of false, true, and 'yes' is none"
    ):
        one_of({"prunePrevious": "yes"}, "prunePrevious", ("false", "true"))
    assert whole_number("taskRows", "7") == 7
    for text in ("-1", "1.5", "", "٣"):
        with pytest.raises(InvalidRequestError, match="the option 'taskRows' is a number, and"):
            whole_number("taskRows", text)
