"""Dates and times as texts."""

from datetime import UTC, date, datetime

import pytest

from omnigraph.language.query.dates import parse_date, parse_datetime


def test_a_date_is_year_month_and_day() -> None:
    assert parse_date("2024-02-29") == date(2024, 2, 29)
    assert parse_date("0001-01-01") == date(1, 1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "2023-02-29", "2024-13-01", "2024-1-1", "20240131", "2024-01-31 ", "2024-W01", "２０２４-01-31", "0000-01-01"],
)
def test_what_is_no_day_is_no_date(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", (0, 0, 0, 0)),
        ("2024-01-31T10:20", (10, 20, 0, 0)),
        ("2024-01-31T10:20:30Z", (10, 20, 30, 0)),
        ("2024-01-31 10:20:30 Z", (10, 20, 30, 0)),
        ("2024-01-31T10:20:30.5", (10, 20, 30, 500_000)),
        ("2024-01-31T10:20:30.123456789z", (10, 20, 30, 123_000)),
        ("2024-01-31T10:20:30+02:00", (8, 20, 30, 0)),
        ("2024-01-31T10:20:30-0130", (11, 50, 30, 0)),
        ("2024-01-31T10:20:30+02", (8, 20, 30, 0)),
    ],
)
def test_a_time_is_read_in_its_usual_forms_and_kept_in_utc(text: str, expected: tuple[int, int, int, int]) -> None:
    assert parse_datetime(text) == datetime(2024, 1, 31, *expected, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-31T",
        "2024-01-31T25:00:00Z",
        "2024-01-31T10:20:61Z",
        "2024-01-31T10",
        "2024-01-31T10:20:30+24:00",
        "2024-01-31T10:20:30+02:60",
        "2024-01-31T10:20:30.Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "now",
    ],
)
def test_what_names_no_instant_is_no_time(text: str) -> None:
    assert parse_datetime(text) is None
