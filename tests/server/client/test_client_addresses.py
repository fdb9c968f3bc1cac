"""Addresses of servers: what stands in them beside the host is refused, and not repeated."""

import traceback

import pytest
from tests.support.command_line import run

import omnigraph
from omnigraph.client.connect import graphs_at, server_and_graph
from omnigraph.errors import InvalidRequestError

SECRET = "very-secret"
HOLDING_SECRETS = [
    f"http://me:{SECRET}@host:8080",
    f"https://{SECRET}@host/graphs/library",
    f"https://host/graphs/library?token={SECRET}",
    f"https://host/#{SECRET}",
    f"host:8080?token={SECRET}",
]


@pytest.mark.parametrize("url", HOLDING_SECRETS)
def test_an_address_that_holds_a_secret_is_refused_and_not_repeated(url: str) -> None:
    for use in (lambda: omnigraph.connect(url, token="x"), lambda: graphs_at(url)):
        with pytest.raises(InvalidRequestError) as refused:
            use()
        assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("url", HOLDING_SECRETS)
def test_the_command_line_does_not_repeat_it_either(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = run("query", "-e", "query q() { match { $a: A } return { $a } }", "--server", url)

    assert done.code != 0
    assert SECRET not in done.out + done.err + "".join(capfd.readouterr())


def test_addresses_without_secrets_are_taken_as_they_are() -> None:
    assert server_and_graph("https://host:8080/") == ("https://host:8080", None)
    assert server_and_graph("https://host/graphs/a%20b") == ("https://host", "a b")
