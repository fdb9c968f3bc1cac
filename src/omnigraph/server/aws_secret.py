"""One secret of AWS Secrets Manager: a single signed request, without a library for all of AWS."""

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


def secret_text(secret: str, environment: Mapping[str, str], *, clock: Clock | None = None) -> str:
    """The text of a secret.

    Args:
        secret (str): its name or ARN.
        environment (Mapping[str, str]): AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, of a session, AWS_SESSION_TOKEN;
            AWS_REGION or AWS_DEFAULT_REGION, unless the ARN says where it is; AWS_ENDPOINT_URL_SECRETS_MANAGER or
            AWS_ENDPOINT_URL for another address than that of AWS.
        clock (Clock | None): the source of time.

    Returns:
        str: the text, which nobody logs.

    Raises:
        InvalidRequestError: a variable is missing, the secret may not be read, or nobody answers.
    """
    key, private = (_needed(environment, name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    arn = secret.split(":")
    region = arn[3] if len(arn) >= _ARN_PARTS and arn[0] == "arn" else ""
    region = region or environment.get("AWS_REGION") or _needed(environment, "AWS_DEFAULT_REGION")
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
    headers["authorization"] = signature(headers, body, region=region, key=key, private=private)
    try:
        answer = httpx.post(address, content=body, headers=headers, timeout=limits.CLIENT_CONNECT_S_MAX)
        found = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as fault:
        raise InvalidRequestError(f"the secret '{secret}' cannot be read: {type(fault).__name__}") from None
    if not answer.is_success:
        kind = str(found.get("__type", "")).rpartition("#")[2] if isinstance(found, dict) else ""
        reason = kind or f"status {answer.status_code}"
        raise InvalidRequestError(f"the secret '{secret}' cannot be read: {reason}")
    text = found.get("SecretString") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise InvalidRequestError(f"the secret '{secret}' is no text")
    return text


def signature(
    headers: Mapping[str, str], body: bytes, *, region: str, key: str, private: str, service: str = _SERVICE
) -> str:
    """The header by which AWS knows who asks (Signature Version 4) for a POST to `/` without parameters.

    Args:
        headers (Mapping[str, str]): all that are signed, in small letters; `x-amz-date` among them.
        body (bytes): of the request.
        region (str): where the service is.
        key (str): the id of the key.
        private (str): the key itself.
        service (str): which service.

    Returns:
        str: the value of `Authorization`.
    """
    moment = headers["x-amz-date"]
    names = ";".join(sorted(headers))
    told = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    request = "\n".join(("POST", "/", "", told, names, hashlib.sha256(body).hexdigest()))
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    signing = f"AWS4{private}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signed = hmac.digest(signing, to_sign.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signed}"


def _needed(environment: Mapping[str, str], name: str) -> str:
    found = environment.get(name, "").strip()
    if not found:
        raise InvalidRequestError(f"a secret of AWS is to be read, and {name} is not set")
    return found
