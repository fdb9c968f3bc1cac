"""What tests of several folders ask for: servers, started once for the whole run, and a limit for small tables."""

import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from tests.support.postgres_server import PostgresServer, postgres_binaries
from tests.support.postgres_server import postgres_server as running_postgres_server
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_proxy import s3_proxy as running_s3_proxy
from tests.support.s3_server import S3Server
from tests.support.s3_server import s3_server as running_s3_server

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores import S3Store

S3_BUCKET = "omnigraph-tests"

# The one profile of all tests: how long an example takes says more about the machine than about the code. Shrinking a
# failure takes long, too, and is left out where the failure is all that matters.
settings.register_profile(
    "omnigraph",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.shrink or "OMNIGRAPH_TESTS_DO_NOT_SHRINK" not in os.environ],
)
settings.load_profile("omnigraph")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share a run, one runs a whole file, one all of Spark, one what parses the source."""
    for item in items:
        file, _, _ = item.nodeid.partition("::")
        group = "architecture" if file.startswith("tests/architecture/") else file
        item.add_marker(pytest.mark.xdist_group("spark" if "spark" in item.nodeid.lower() else group))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server with the bucket `omnigraph-tests`."""
    with running_s3_server() as server:
        server.create_bucket(S3_BUCKET)
        yield server


@pytest.fixture(scope="session")
def _running_s3_proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with running_s3_proxy((s3_server.host, s3_server.port)) as proxy:
        yield proxy


@pytest.fixture
def s3_proxy(_running_s3_proxy: S3Proxy) -> Iterator[S3Proxy]:
    """A proxy before the S3 server that has seen nothing and cuts nothing yet."""
    _running_s3_proxy.reset()
    yield _running_s3_proxy
    _running_s3_proxy.reset()


@pytest.fixture
def s3_prefix() -> str:
    """A place in the bucket that no other test uses."""
    return UlidSource().new().lower()


@pytest.fixture
def s3_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables by which whoever is given no options finds the S3 server."""
    options = s3_server.options
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(options.endpoint))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(options.access_key_id))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(options.secret_access_key))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")


@pytest.fixture
def s3_store(s3_server: S3Server, s3_prefix: str) -> S3Store:
    """An empty store on the S3 server."""
    return S3Store(S3_BUCKET, s3_prefix, options=s3_server.options)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server with an empty database."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL's server is not installed")
    with running_postgres_server(binaries) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one Spark session of the run, small; whatever asks for a session while it lives gets this one.

    `OMNIGRAPH_TEST_SPARK` says of what kind it is: `classic`, `connect` or `cluster`.
    """
    # Imported here: most runs need no Spark, and its package takes its time.
    from omnigraph.pipeline.session import spark_session, stop_spark_session
    from omnigraph.pipeline.settings import SparkSettings

    kind = os.environ.get("OMNIGRAPH_TEST_SPARK", "classic")
    if kind == "connect":
        from tests.support.spark_connect import running_connect_server

        with running_connect_server(tmp_path_factory.mktemp("connect")) as address:
            session = spark_session(SparkSettings(master=address))
            yield session
            session.stop()
        return
    conf = (("spark.sql.shuffle.partitions", "2"), ("spark.default.parallelism", "2"))
    master = {"classic": "local[2]", "cluster": "local-cluster[2,1,1024]"}[kind]
    yield spark_session(SparkSettings(master=master, driver_memory="1g", conf=conf))
    stop_spark_session()


@pytest.fixture(scope="module")
def parts_of_few_texts_are_indexed() -> Iterator[None]:
    """As if a handful of texts were many: otherwise they are looked through one by one."""
    with patch.object(limits, "PARTS_INDEX_ROWS_MIN", 1):
        yield
