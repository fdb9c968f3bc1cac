"""Read one secret from AWS Secrets Manager with a single signed request, without the AWS SDK."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InvalidRequestError

_SERVICE = "secretsmanager"
_TARGET = "secretsmanager.GetSecretValue"
_MEDIA = "application/x-amz-json-1.1"
_ARN_PARTS = 7


def read_secret(secret: str, environment: Mapping[str, str], *, clock: Clock | None = None) -> str:
    """Return the text of a secret.

    Args:
        secret: name or ARN.
        environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a session, AWS_SESSION_TOKEN; AWS_REGION or
            AWS_DEFAULT_REGION, unless the ARN has a region; AWS_ENDPOINT_URL_SECRETS_MANAGER or AWS_ENDPOINT_URL for
            an endpoint other than AWS.
        clock: the source of time.

    Raises:
        InvalidRequestError: a variable is missing, the secret may not be read, or the endpoint does not respond.
    """
    key, private = (_require(environment, name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    arn = secret.split(":")
    region = arn[3] if len(arn) >= _ARN_PARTS and arn[0] == "arn" else ""
    region = region or environment.get("AWS_REGION") or _require(environment, "AWS_DEFAULT_REGION")
    address = environment.get("AWS_ENDPOINT_URL_SECRETS_MANAGER") or environment.get("AWS_ENDPOINT_URL")
    address = (address or f"https://{_SERVICE}.{region}.amazonaws.com").rstrip("/") + "/"
    body = json.dumps({"SecretId": secret}).encode()
    now = datetime.fromtimestamp((clock or SystemClock()).now_us() / 1_000_000, UTC)
    headers = {
        "content-type": _MEDIA,
        "host": urlsplit(address).netloc,
        "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
        "x-amz-target": _TARGET,
    }
    if session := environment.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = session
    headers["authorization"] = sign(headers, body, region=region, key=key, private=private)
    try:
        response = httpx.post(address, content=body, headers=headers, timeout=limits.CLIENT_CONNECT_S_MAX)
        document = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
        raise InvalidRequestError(f"the secret '{secret}' cannot be read: {type(fault).__name__}") from None
    if not response.is_success:
        kind = str(document.get("__type", "")).rpartition("#")[2] if isinstance(document, dict) else ""
        reason = kind or f"status {response.status_code}"
        raise InvalidRequestError(f"the secret '{secret}' cannot be read: {reason}")
    text = document.get("SecretString") if isinstance(document, dict) else None
    if not isinstance(text, str):
        raise InvalidRequestError(f"the secret '{secret}' is not text")
    return text


def sign(
    headers: Mapping[str, str], body: bytes, *, region: str, key: str, private: str, service: str = _SERVICE
) -> str:
    """Return the `Authorization` header (AWS Signature Version 4) of a POST to `/` without parameters.

    Args:
        headers: all headers to sign, names in lower case, `x-amz-date` included.
        body: sent as it is.
        region: AWS region of the service.
        key: access key id.
        private: secret access key.
        service: name of the AWS service.
    """
    timestamp = headers["x-amz-date"]
    names = ";".join(sorted(headers))
    signed_headers = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    request = "\n".join(("POST", "/", "", signed_headers, names, hashlib.sha256(body).hexdigest()))
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", timestamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    signing_key = f"AWS4{private}".encode()
    for part in scope.split("/"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    signed = hmac.digest(signing_key, to_sign.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signed}"


def _require(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise InvalidRequestError(f"{name} is not set, which reading a secret of AWS requires")
    return value
