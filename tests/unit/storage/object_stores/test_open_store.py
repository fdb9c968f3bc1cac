"""From an address to a store."""

import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.ids import UlidSource
from omnigraph.storage.external_stores import SqliteExternalStore, open_external_store
from omnigraph.storage.external_stores import open as open_module
from omnigraph.storage.object_store import ObjectNotFound, StoreRefused
from omnigraph.storage.object_stores import MemoryStore, ReadOnlyStore, S3Options, open_store, table_options

ENDPOINT = "http://127.0.0.1:1"


def test_a_path_is_a_store_on_local_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    spaced = tmp_path / "a b"
    addresses = ("a b", "./a b", "~/a b", str(spaced), f"file://{tmp_path}/a%20b", f"file://localhost{tmp_path}/a%20b")
    for address in addresses:
        assert open_store(address).uri == str(spaced)
    assert not spaced.exists()
    open_store("a b", durability="process").put("x", b"1")
    assert (spaced / "x").read_bytes() == b"1"
    assert table_options(open_store("a b")) == {}


def test_a_durability_nobody_knows_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="eternal"):
        open_store(str(tmp_path), durability="eternal")


def test_a_name_in_memory_is_one_store_and_no_name_is_a_fresh_one() -> None:
    name = UlidSource().new()
    open_store(f"memory://{name}").put("a", b"1")
    assert open_store(f"memory://{name}").get("a") == b"1"
    with pytest.raises(ObjectNotFound):
        open_store(f"memory://{name}/other").get("a")
    open_store("memory://").put("a", b"1")
    with pytest.raises(ObjectNotFound):
        open_store("memory://").get("a")


def test_a_store_opened_read_only_refuses_writes(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "graph"), read_only=True)
    with pytest.raises(StoreRefused, match="read-only"):
        store.put("a", b"")
    assert list(store.list("")) == []
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize("address", ["ftp://host/graph", "http://host/graph", "hdfs://host/graph"])
def test_an_address_nobody_serves_is_refused(address: str) -> None:
    with pytest.raises(StoreRefused, match="no store is known"):
        open_store(address)


def test_stores_of_other_clouds_open_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert open_store("gs://bucket/graph/").uri == "gs://bucket/graph"
    assert open_store("az://container/graph").uri == "az://container/graph"


class TestS3Addresses:
    def test_say_bucket_and_prefix(self) -> None:
        options = S3Options(endpoint=ENDPOINT, allow_http=True)
        assert open_store("s3://bucket/a/b/", s3=options).uri == "s3://bucket/a/b"
        assert open_store("s3://bucket", s3=options).uri == "s3://bucket"

    def test_take_the_usual_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", ENDPOINT)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        assert table_options(open_store("s3://bucket/graph", read_only=True)) == {
            "endpoint": ENDPOINT,
            "region": "eu-west-1",
            "access_key_id": "id",
            "secret_access_key": "secret",
            "session_token": "token",
            "allow_http": "true",
            "virtual_hosted_style_request": "false",
            "connect_timeout": "5s",
            "timeout": "30s",
            "client_retry_timeout": "30",
        }

    def test_prefer_the_variables_that_say_more(self) -> None:
        options = S3Options.from_environment(
            {
                "AWS_ENDPOINT_URL": "https://general",
                "AWS_ENDPOINT_URL_S3": "https://special",
                "AWS_DEFAULT_REGION": "general",
                "AWS_REGION": "special",
            }
        )
        assert (options.endpoint, options.region) == ("https://special", "special")

    def test_have_defaults_where_nothing_is_said(self) -> None:
        assert S3Options.from_environment({}) == S3Options()
        assert S3Options.from_environment({"AWS_ENDPOINT_URL": "", "AWS_ALLOW_HTTP": "no"}) == S3Options()

    def test_use_plain_http_only_when_told_to(self) -> None:
        with pytest.raises(StoreRefused, match="AWS_ALLOW_HTTP=true"):
            open_store("s3://bucket/graph", s3=S3Options(endpoint=ENDPOINT))
        open_store("s3://bucket/graph", s3=S3Options(endpoint="https://127.0.0.1:1"))

    def test_do_not_show_secrets(self) -> None:
        shown = repr(S3Options(access_key_id="id", secret_access_key="hidden", session_token="hidden"))
        assert "hidden" not in shown

    def test_without_a_bucket_are_refused(self) -> None:
        with pytest.raises(StoreRefused):
            open_store("s3://", s3=S3Options(endpoint=ENDPOINT, allow_http=True))


class TestExternalStores:
    def test_are_named_by_their_address(self, tmp_path: Path) -> None:
        address = f"sqlite://{tmp_path}/a%20b.db"
        store = open_store(str(tmp_path / "graph"), external=address)
        store.put_if_absent("a", b"1")
        assert store.get("a") == b"1"
        external = SqliteExternalStore(tmp_path / "a b.db")
        entry = external.get(store.uri, "a")
        assert entry is not None
        assert entry.is_final
        external.close()

    def test_are_given_as_they_are(self, tmp_path: Path) -> None:
        external = SqliteExternalStore(tmp_path / "external.db")
        open_store(str(tmp_path / "graph"), external=external).put_if_absent("a", b"1")
        assert external.get(str(tmp_path / "graph"), "a") is not None
        external.close()

    def test_let_a_reader_finish_a_write_that_it_could_not_have_begun(self, tmp_path: Path) -> None:
        root = str(tmp_path / "graph")
        external = SqliteExternalStore(tmp_path / "external.db")
        open_store(root).put("__staged/a.X.staged", b"1")
        external.put_if_absent(root, "a", "__staged/a.X.staged")
        reader = open_store(root, read_only=True, external=external)
        assert reader.get("a") == b"1"
        with pytest.raises(StoreRefused, match="read-only"):
            reader.put_if_absent("b", b"")
        external.close()

    def test_that_nobody_uses_cost_no_driver(self) -> None:
        program = "import sys, omnigraph.storage.object_stores; sys.exit('psycopg' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_of_an_unknown_kind_are_refused(self) -> None:
        with pytest.raises(StoreRefused, match="no external store is known"):
            open_external_store("redis://host")

    def test_that_need_what_is_not_installed_say_what(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> None:
            raise ImportError(name)

        monkeypatch.setattr(open_module, "import_module", missing)
        with pytest.raises(StoreRefused, match=r"omnigraph\[postgres\]"):
            open_external_store("postgresql://host/database")


def test_wrappers_say_how_tables_are_opened() -> None:
    class Elsewhere(MemoryStore):
        @property
        def table_options(self) -> dict[str, str]:
            return {"endpoint": ENDPOINT}

    assert table_options(ReadOnlyStore(Elsewhere())) == {"endpoint": ENDPOINT}
