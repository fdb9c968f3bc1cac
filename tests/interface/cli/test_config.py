"""The operator's configuration and the tokens of servers."""

import io
from pathlib import Path

import pytest
from tests.support.command_line import Run

from omnigraph.cli import config
from omnigraph.errors import InvalidRequestError

QUERY = "query q() { match { $a: Author } return { $a.name } }"
ADD = 'query q() { insert Author { name: "Butler" } }'
SERVERS = "servers: { prod: { url: https://host/a }, my-lab: { url: https://host/a/b } }\n"


def configure(home: Path, text: str) -> None:
    """Write the operator's configuration."""
    (home / "config.yaml").write_text(text)


def test_a_default_store_is_used_where_nothing_is_addressed(run: Run, library: str, operator_home: Path) -> None:
    configure(operator_home, f"defaults: {{ store: {library} }}\n")
    assert run("query", "-e", QUERY).code == 0


def test_a_profile_wins_over_defaults_and_an_address_over_a_profile(
    run: Run, library: str, operator_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(
        operator_home, f"defaults: {{ store: nowhere }}\nprofiles: {{ p: {{ store: {library} }}, q: {{ store: x }} }}\n"
    )
    assert run("query", "-e", QUERY).code == 1
    assert run("query", "-e", QUERY, "--profile", "p").code == 0
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "p")
    assert run("query", "-e", QUERY).code == 0
    assert run("query", "-e", QUERY, "--profile", "q").code == 1
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "q")
    assert run("query", "-e", QUERY, "--store", library).code == 0


def test_the_actor_is_the_flag_else_the_operator(run: Run, library: str, operator_home: Path) -> None:
    configure(operator_home, "operator: { actor: act-me }\n")
    assert "actor_id: act-me\n" in run("mutate", "--store", library, "-e", ADD).out
    again = ADD.replace("Butler", "Lem")
    assert "actor_id: ann\n" in run("mutate", "--store", library, "-e", again, "--as", "ann").out


def test_the_output_is_the_flag_else_the_default(run: Run, library: str, operator_home: Path) -> None:
    run("mutate", "--store", library, "-e", 'query q() { insert Author { name: "' + "long " * 9 + '" } }')
    configure(operator_home, "defaults: { output: csv, table_max_column_width: 12 }\n")
    assert run("query", "--store", library, "-e", QUERY).out.startswith("a.name\nlong ")
    assert "long long l…\n" in run("query", "--store", library, "-e", QUERY, "--format", "table").out
    configure(operator_home, "defaults: { table_max_column_width: 12, table_cell_layout: wrap }\n")
    assert "…" not in run("query", "--store", library, "-e", QUERY).out


def test_an_unknown_key_is_a_warning(run: Run, library: str, operator_home: Path) -> None:
    configure(operator_home, "nonsense: 1\ndefaults: { colour: red }\n")
    ended = run("branch", "list", "--store", library)
    assert ended.code == 0
    assert f"warning: unknown key 'nonsense' in {operator_home / 'config.yaml'}\n" in ended.err
    assert "warning: unknown key 'defaults.colour'" in ended.err


def test_a_configuration_of_comments_alone_is_empty(run: Run, library: str, operator_home: Path) -> None:
    configure(operator_home, "# nothing yet\n")
    assert run("branch", "list", "--store", library).code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not YAML"),
        ("[]", "must be a mapping"),
        ("servers: { a: 1 }", "must be a mapping with a 'url'"),
        ("defaults: { server: a, store: b }", "names both a server and a store"),
        ("profiles: { p: { server: a, store: b } }", "exactly one of server, cluster and store"),
        ("profiles: { p: {} }", "it names none"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(
    run: Run, library: str, operator_home: Path, text: str, message: str
) -> None:
    configure(operator_home, text)
    ended = run("branch", "list", "--store", library)
    assert ended.code == 1
    assert message in ended.err


def test_a_served_graph_takes_no_actor(run: Run, operator_home: Path) -> None:
    configure(operator_home, SERVERS)
    ended = run("mutate", "--server", "prod", "--graph", "g", "--as", "ann", "-e", ADD)
    assert ended.code == 1


# --- credentials ------------------------------------------------------------------------------------------------------


def test_a_token_is_kept_where_only_its_owner_can_read_it(
    run: Run, operator_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    ended = run("login", "prod")
    assert ended.code == 0
    assert "secret" not in ended.out + ended.err
    path = operator_home / "credentials"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "[prod]\ntoken = secret\n\n"
    assert config.tokens() == {"prod": "secret"}
    assert run("logout", "prod").code == 0
    assert config.tokens() == {}


def test_credentials_that_others_may_read_are_refused(run: Run, operator_home: Path) -> None:
    run("login", "prod", "--token", "secret")
    (operator_home / "credentials").chmod(0o640)
    with pytest.raises(InvalidRequestError, match="may be read by others"):
        config.tokens()
    assert run("login", "other", "--token", "x").code == 1


def test_an_empty_token_is_refused(run: Run, operator_home: Path) -> None:
    assert run("login", "prod", "--token", " ").code == 1
    assert not (operator_home / "credentials").exists()


@pytest.mark.parametrize("name", ["", " prod", "pr\nod", "pr]od", "DEFAULT"])
def test_a_name_that_cannot_head_its_token_in_the_file_is_refused(run: Run, operator_home: Path, name: str) -> None:
    ended = run("login", name, "--token", "secret")
    assert ended.code == 1
    assert "is not a server name" in ended.err
    assert run("login", "prod", "--token", "secret").code == 0
    assert config.tokens() == {"prod": "secret"}


@pytest.mark.parametrize("token", ["one\n[other]\ntoken = two", "two words", "schlüssel"])
def test_a_token_that_no_request_can_carry_is_refused_and_not_shown(run: Run, operator_home: Path, token: str) -> None:
    ended = run("login", "prod", "--token", token)
    assert ended.code == 1
    assert "one word of printable ASCII" in ended.err
    assert token not in ended.err
    assert config.tokens() == {}


def test_the_token_of_an_address_is_that_of_the_longest_server_it_begins_with(
    run: Run, operator_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(operator_home, SERVERS)
    found = config.read(pytest.fail)
    assert config.token_for(found, "https://host/a/b/graphs") is None
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "any")
    assert config.token_for(found, "https://elsewhere") == "any"
    run("login", "prod", "--token", "of-prod")
    run("login", "my-lab", "--token", "of-lab")
    assert config.token_for(found, "https://host/a/x") == "of-prod"
    assert config.token_for(found, "https://host/a/b/graphs") == "of-lab"
    monkeypatch.setenv("OMNIGRAPH_TOKEN_MY_LAB", "from-variable")
    assert config.token_for(found, "https://host/a/b") == "from-variable"


@pytest.mark.parametrize(
    "address",
    ["https://host.example/a", "https://host/ab", "https://hostile/a", "https://host:8443/a", "http://host/a"],
)
def test_a_token_goes_to_no_address_that_only_begins_like_that_of_its_server(
    run: Run, operator_home: Path, address: str
) -> None:
    configure(operator_home, SERVERS)
    run("login", "prod", "--token", "of-prod")
    assert config.token_for(config.read(pytest.fail), address) is None
