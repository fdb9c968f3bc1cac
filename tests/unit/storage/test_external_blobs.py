"""Which places blobs may lie at, and how addresses become cells."""

import pickle
from pathlib import Path

import pytest

from omnigraph import AllowedBase, BlobScope, BlobSourceError, ExternalBlobPolicy, limits
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.storage.blob_values import HEAD_BYTES, cell_head, reference
from omnigraph.storage.external_blobs import BlobIngress

POLICY = ExternalBlobPolicy(
    (
        AllowedBase("s3://Media/photos/", BlobScope.SERVER_SAFE),
        AllowedBase("https://example.org/", BlobScope.EMBEDDED_ONLY),
    )
)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://media/photos/a.png", "s3://media/photos/a.png"),
        ("S3://MEDIA/photos/sub/A.png", "s3://media/photos/sub/A.png"),
        ("s3://media/photos/caf%C3%A9.png", "s3://media/photos/caf%C3%A9.png"),
        ("HTTPS://Example.org/a", "https://example.org/a"),
    ],
)
def test_an_allowed_address_is_stored_in_its_one_spelling(given: str, stored: str) -> None:
    assert POLICY.approved(given) == stored
    assert POLICY.lets_read(stored)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("s3://media/other/a.png", "it lies below no approved place"),
        ("s3://media/photosets/a.png", "it lies below no approved place"),
        ("s3://elsewhere/photos/a.png", "it lies below no approved place"),
        ("s3://media/photos/", "it names a folder"),
        ("s3://media/photos/../secret", "it has steps up, or empty ones"),
        ("s3://media/photos/./a", "it has steps up, or empty ones"),
        ("s3://media/photos//a", "it has steps up, or empty ones"),
        ("s3://media/photos/%2e%2e/secret", "it hides characters that change its meaning"),
        ("s3://media/photos/..%2Fsecret", "it hides characters that change its meaning"),
        ("s3://media/photos/%252e", "it hides characters that change its meaning"),
        ("s3://key:secret@media/photos/a", "it has credentials"),
        ("s3://media/photos/a?versionId=1", "it has a query or a fragment"),
        ("s3://media/photos/a#b", "it has a query or a fragment"),
        ("s3://media/photos/a b", "it has blanks, control characters or backslashes"),
        ("s3://media/photos/..\\a", "it has blanks, control characters or backslashes"),
        ("file:///etc/passwd", "it lies below no approved place"),
        ("file://host/etc/passwd", "it names a host"),
        ("s3:///photos/a", "it names no host"),
        ("ftp://media/photos/a", "ftp:// is not a place blobs can lie at"),
        ("photos/a.png", "it is no address with a scheme, like s3://bucket/key"),
        ("/etc/passwd", "it is no address with a scheme, like s3://bucket/key"),
        ("", "it is no address with a scheme, like s3://bucket/key"),
    ],
)
def test_every_other_address_is_refused_with_its_reason(given: str, why: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        POLICY.approved(given)

    assert str(refused.value) == f"external blob URI '{given}' is not allowed: {why}"
    assert refused.value.code == "external_blob_not_allowed"
    assert not POLICY.lets_read(given)


def test_without_a_policy_nothing_is_allowed() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ExternalBlobPolicy().approved("s3://media/photos/a.png")

    assert refused.value.code == "external_blob_ingress_default_deny"
    assert "is not allowed: no place is approved for blobs" in str(refused.value)


def test_a_server_uses_only_what_is_safe_for_servers() -> None:
    served = POLICY.for_servers()

    assert served.approved("s3://media/photos/a.png")
    with pytest.raises(InvalidRequestError, match="below no approved place"):
        served.approved("https://example.org/a")


@pytest.mark.parametrize(
    ("base", "scope", "why"),
    [
        ("s3://media/photos", BlobScope.SERVER_SAFE, "it must end with a slash"),
        ("file:///srv/photos/", BlobScope.SERVER_SAFE, "file:// is never server_safe"),
        ("https://example.org/", BlobScope.SERVER_SAFE, "https:// is never server_safe"),
        ("s3://media/../", BlobScope.SERVER_SAFE, "it has steps up"),
        ("photos/", BlobScope.EMBEDDED_ONLY, "no address with a scheme"),
        ("s3://media/", "everybody", "everybody"),
    ],
)
def test_a_base_that_is_no_place_is_refused_when_the_policy_is_made(base: str, scope: BlobScope, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why) as refused:
        AllowedBase(base, scope)
    assert refused.value.code == "invalid_external_blob_base"


def test_a_policy_is_the_same_after_it_was_written_down() -> None:
    assert ExternalBlobPolicy.from_document(POLICY.to_document()) == POLICY
    assert ExternalBlobPolicy.from_document({}) == ExternalBlobPolicy()
    assert pickle.loads(pickle.dumps(POLICY)) == POLICY, "tasks on other machines have it too"


@pytest.mark.parametrize(
    "document",
    [
        {"deny": []},
        {"allow": "s3://media/"},
        {"allow": ["s3://media/"]},
        {"allow": [{"base": "s3://media/"}]},
        {"allow": [{"base": "s3://media/", "scope": "server_safe", "also": 1}]},
        {"allow": [{"base": "s3://media/", "scope": "everybody"}]},
    ],
)
def test_a_policy_written_down_in_another_way_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ExternalBlobPolicy.from_document(document)
    assert refused.value.code == "invalid_external_blob_policy"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.bin").write_bytes(b"bytes of a")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path


@pytest.fixture
def policy(folder: Path) -> ExternalBlobPolicy:
    return ExternalBlobPolicy((AllowedBase(f"file://{folder}/open/"),))


def test_a_link_that_leads_out_of_its_folder_is_refused(folder: Path, policy: ExternalBlobPolicy) -> None:
    (folder / "open" / "link").symlink_to(folder / "secret")

    with pytest.raises(InvalidRequestError, match="it leads out of its approved place"):
        policy.approved(f"file://{folder}/open/link")
    (folder / "open" / "sub").symlink_to(folder)
    with pytest.raises(InvalidRequestError, match="it leads out of its approved place"):
        policy.approved(f"file://{folder}/open/sub/secret")
    (folder / "open" / "inner").symlink_to(folder / "open" / "a.bin")
    assert BlobIngress(policy).cells([f"file://{folder}/open/inner"]) == [b"bytes of a"]


def test_a_name_that_became_a_link_out_of_its_folder_is_read_no_more(folder: Path, policy: ExternalBlobPolicy) -> None:
    uri = policy.approved(f"file://{folder}/open/a.bin")
    assert policy.lets_read(uri)
    (folder / "open" / "a.bin").unlink()
    (folder / "open" / "a.bin").symlink_to(folder / "secret")
    assert not policy.lets_read(uri)


def test_bytes_are_copied_or_left_where_they_are(folder: Path, policy: ExternalBlobPolicy) -> None:
    uri = f"file://{folder}/open/a.bin"

    assert BlobIngress(policy).cells([uri, uri]) == [b"bytes of a"] * 2
    kept = BlobIngress(policy, keeps_references=True).cells([uri.replace("file://", "file://localhost")])
    assert kept == [reference(uri)]
    assert cell_head(kept[0][:HEAD_BYTES]).is_reference


def test_an_operation_that_runs_again_has_the_same_bytes(folder: Path, policy: ExternalBlobPolicy) -> None:
    ingress, uri = BlobIngress(policy), f"file://{folder}/open/a.bin"
    first = ingress.cells([uri])

    (folder / "open" / "a.bin").write_bytes(b"others now")

    assert ingress.cells([uri]) == first
    assert ingress.another().cells([uri]) == [b"others now"]


@pytest.mark.parametrize("keeps_references", [False, True])
def test_an_allowed_place_with_nothing_there_is_told_as_a_fault_of_the_source(
    folder: Path, policy: ExternalBlobPolicy, *, keeps_references: bool
) -> None:
    uri = f"file://{folder}/open/missing"

    with pytest.raises(BlobSourceError) as failed:
        BlobIngress(policy, keeps_references=keeps_references).cells([uri])

    assert failed.value.code == "external_blob_source"
    assert failed.value.details == {"uri": uri, "reason": "there is nothing at that place"}
    assert str(failed.value) == f"external blob source '{uri}' is unavailable: there is nothing at that place"


@pytest.mark.parametrize(
    ("resource", "most"),
    [
        ("external Blob URI bytes", "BLOB_URI_BYTES_MAX"),
        ("external Blob reference cells", "BLOB_REFERENCES_MAX"),
        ("materialized blob payload bytes", "BLOB_INPUT_BYTES_MAX"),
    ],
)
def test_more_than_one_operation_may_bring_is_refused_by_the_name_of_the_bound(
    folder: Path, policy: ExternalBlobPolicy, monkeypatch: pytest.MonkeyPatch, resource: str, most: str
) -> None:
    monkeypatch.setattr(limits, most, 1)
    uri = f"file://{folder}/open/a.bin"

    with pytest.raises(LimitError) as refused:
        BlobIngress(policy).cells([uri, uri])

    assert refused.value.code == "resource_limit"
    assert refused.value.details["resource"] == resource
    assert refused.value.details["limit"] == 1


def test_nothing_is_read_before_every_address_is_allowed(folder: Path, policy: ExternalBlobPolicy) -> None:
    with pytest.raises(InvalidRequestError, match="passwd"):
        BlobIngress(policy).cells([f"file://{folder}/open/missing", "file:///etc/passwd"])
