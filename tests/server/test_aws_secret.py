"""Bearer tokens that lie in a secret of AWS, read from a server of its own that speaks as AWS does."""

import json

import httpx
import pytest
from tests.support.s3_server import S3Server

from omnigraph.errors import InvalidRequestError
from omnigraph.server.aws_secret import sign
from omnigraph.server.tokens import load_tokens

SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"


@pytest.fixture
def environment(s3_server: S3Server) -> dict[str, str]:
    """What a process has that may read secrets."""
    return {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_server.endpoint,
    }


def kept(server: S3Server, name: str, text: str) -> str:
    """Put a secret; its ARN."""
    answer = httpx.post(
        server.endpoint,
        json={"Name": name, "SecretString": text},
        headers={
            "X-Amz-Target": "secretsmanager.CreateSecret",
            "Content-Type": "application/x-amz-json-1.1",
            "Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/secretsmanager/aws4_request, x=y",
        },
    )
    found: str = answer.raise_for_status().json()["ARN"]
    return found


@pytest.mark.s3
def test_tokens_are_read_from_a_secret_by_name_and_by_arn_and_from_nowhere_else(
    s3_server: S3Server, environment: dict[str, str]
) -> None:
    arn = kept(s3_server, "tokens-of-actors", json.dumps({"ann": "token-of-ann", "bob": "token-of-bob"}))
    for said in ("tokens-of-actors", arn):
        tokens = load_tokens({**environment, SECRET: said, "OMNIGRAPH_SERVER_BEARER_TOKEN": "another"})
        assert sorted(tokens.actors) == ["ann", "bob"]
        assert tokens.authenticate("Bearer token-of-bob") == "bob"


@pytest.mark.s3
def test_a_secret_that_is_not_there_or_is_no_tokens_stops_the_start_and_is_not_told(
    s3_server: S3Server, environment: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequestError, match="'nothing' cannot be read: ResourceNotFoundException"):
        load_tokens({**environment, SECRET: "nothing"})
    kept(s3_server, "no-tokens", "hush")
    with pytest.raises(InvalidRequestError, match="must hold a JSON object") as told:
        load_tokens({**environment, SECRET: "no-tokens"})
    assert "hush" not in str(told.value)


def test_nobody_who_answers_stops_the_start() -> None:
    nobody = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": "http://127.0.0.1:1",
        SECRET: "tokens",
    }
    with pytest.raises(InvalidRequestError, match="'tokens' cannot be read: ConnectError") as told:
        load_tokens(nobody)
    assert "hush" not in str(told.value)
    del nobody["AWS_DEFAULT_REGION"]
    with pytest.raises(InvalidRequestError, match="AWS_DEFAULT_REGION is not set"):
        load_tokens(nobody)


def test_a_request_is_signed_as_the_published_example_of_version_4_is() -> None:
    found = sign(
        {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"},
        b"",
        region="us-east-1",
        key="AKIDEXAMPLE",
        private="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        service="service",
    )
    assert found == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    )
