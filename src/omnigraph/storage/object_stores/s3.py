"""S3, and whatever speaks like it: MinIO, Ceph, R2.

Requests are sent once. A client library that repeats a conditional put by itself can be refused because of its own
first try and nobody learns of it; here repeating is the business of `RetryingStore`, which knows what may be repeated.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.store import S3Store as ForeignS3Store

from omnigraph import limits
from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.object_stores.obstore_backed import FOREIGN_ERRORS, ObstoreStore, reason

if TYPE_CHECKING:
    from obstore.store import ClientConfig

DEFAULT_REGION = "us-east-1"
_TRUE = frozenset({"1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach a bucket.

    Attributes:
        endpoint: address of the server; None means Amazon's own for the region.
        region: the bucket's region.
        access_key_id: None leaves finding credentials to the client library (instance roles and the like).
        secret_access_key: belongs to the key id.
        session_token: belongs to temporary keys.
        allow_http: whether an address without encryption may be used.
        virtual_hosted: whether the bucket's name goes into the host name instead of the path.
    """

    endpoint: str | None = None
    region: str = DEFAULT_REGION
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    allow_http: bool = False
    virtual_hosted: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "S3Options":
        """What the usual AWS_* variables say."""
        return cls(
            endpoint=environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None,
            region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION,
            access_key_id=environment.get("AWS_ACCESS_KEY_ID") or None,
            secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY") or None,
            session_token=environment.get("AWS_SESSION_TOKEN") or None,
            allow_http=environment.get("AWS_ALLOW_HTTP", "").lower() in _TRUE,
            virtual_hosted=environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() in _TRUE,
        )

    @classmethod
    def from_storage_options(cls, options: Mapping[str, str]) -> "S3Options":
        """What `as_storage_options` of others says."""
        return cls(
            endpoint=options.get("endpoint"),
            region=options.get("region", DEFAULT_REGION),
            access_key_id=options.get("access_key_id"),
            secret_access_key=options.get("secret_access_key"),
            session_token=options.get("session_token"),
            allow_http=options.get("allow_http") == "true",
            virtual_hosted=options.get("virtual_hosted_style_request") == "true",
        )

    def as_storage_options(self) -> dict[str, str]:
        """The same, by the names the table library and obstore share."""
        known = {
            "endpoint": self.endpoint,
            "region": self.region,
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "session_token": self.session_token,
        }
        return {
            **{name: value for name, value in known.items() if value is not None},
            "allow_http": str(self.allow_http).lower(),
            "virtual_hosted_style_request": str(self.virtual_hosted).lower(),
        }


def time_limits() -> "ClientConfig":
    """How long a client waits for a connection and for an answer."""
    return {
        "connect_timeout": timedelta(seconds=limits.STORE_CONNECT_TIMEOUT_S),
        "timeout": timedelta(seconds=limits.STORE_REQUEST_TIMEOUT_S),
    }


def table_time_limits() -> dict[str, str]:
    """The same for the table library, which by itself goes on for many minutes with a server that never answers."""
    return {
        "connect_timeout": f"{limits.STORE_CONNECT_TIMEOUT_S:g}s",
        "timeout": f"{limits.STORE_REQUEST_TIMEOUT_S:g}s",
        "client_retry_timeout": str(math.ceil(limits.STORE_REQUEST_TIMEOUT_S)),
    }


class S3Store(ObstoreStore):
    """Objects below a prefix of a bucket."""

    def __init__(self, bucket: str, prefix: str = "", *, options: S3Options | None = None) -> None:
        """A store on `s3://bucket/prefix`.

        Args:
            prefix: path of the root inside the bucket; empty for the whole bucket.
            options: how to reach it; by default what the environment says.

        Raises:
            StoreRefused: there is no bucket, plain http was not asked for, or the address makes no sense.
        """
        options = options or S3Options.from_environment()
        prefix = prefix.strip("/")
        uri = f"s3://{bucket}/{prefix}".rstrip("/")
        if not bucket:
            raise StoreRefused("an s3:// address needs a bucket", path=uri)
        if options.endpoint is not None and options.endpoint.startswith("http://") and not options.allow_http:
            raise StoreRefused(
                f"{options.endpoint} is not encrypted; set AWS_ALLOW_HTTP=true to use it all the same", path=uri
            )
        storage_options = options.as_storage_options()
        try:
            inner = ForeignS3Store(
                bucket,
                prefix=prefix or None,
                client_options={"allow_http": options.allow_http, **time_limits()},
                retry_config={"max_retries": 0},
                config={name: value for name, value in storage_options.items() if name != "allow_http"},  # type: ignore[arg-type]  # the stub names every option, we carry them on
            )
        except FOREIGN_ERRORS as error:
            raise StoreRefused(f"cannot use {uri}: {reason(error)}", path=uri) from error
        super().__init__(inner, uri=uri, table_options=storage_options | table_time_limits())
