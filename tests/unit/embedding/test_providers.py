"""Providers of embeddings: what they send, what they make of the answers, and what they say when there are none."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.support.embedding_server import EmbeddingServer, embedding_server

from omnigraph.embedding.choose import choose_provider
from omnigraph.embedding.provider import MockProvider, Provider, Purpose
from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.testing.clock import ManualClock

KEY = "the-secret-key"
SERVICES = {
    "openai-compatible": "OPENROUTER_API_KEY",
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


def provider(name: str, server: EmbeddingServer, **more: str) -> Provider:
    settings = {"OMNIGRAPH_EMBED_PROVIDER": name, "OMNIGRAPH_EMBED_BASE_URL": server.url, SERVICES[name]: KEY}
    return choose_provider(settings | more, clock=ManualClock())


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gives_a_vector_of_length_one(server: EmbeddingServer, name: str) -> None:
    vector = provider(name, server).embed("héllo", 8, Purpose.QUERY)

    assert vector.dtype == np.float32
    assert np.allclose(vector, MockProvider().embed("héllo", 8, Purpose.QUERY), atol=1e-6)
    assert abs(float(vector @ vector) - 1) < 1e-5


def test_openai_is_asked_with_a_bearer_and_its_document(server: EmbeddingServer) -> None:
    provider("openai", server, OMNIGRAPH_EMBED_MODEL="m-1").embed("hello", 4, Purpose.QUERY)

    (asked,) = server.asked
    assert asked.path == "/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "m-1", "input": ["hello"], "dimensions": 4}


def test_gemini_is_told_what_the_text_is(server: EmbeddingServer) -> None:
    provider("gemini", server).embed("hello", 4, Purpose.DOCUMENT)

    (asked,) = server.asked
    assert asked.path == "/models/gemini-embedding-2:embedContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body == {
        "model": "models/gemini-embedding-2",
        "content": {"parts": [{"text": "hello"}]},
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 4,
    }


@pytest.mark.parametrize("name", SERVICES)
def test_a_passing_fault_is_tried_again(server: EmbeddingServer, name: str) -> None:
    server.next.statuses = [429, 503, 500]
    provider(name, server).embed("hello", 4, Purpose.QUERY)
    assert len(server.asked) == 4


def test_a_service_that_keeps_failing_is_given_up_with_its_last_word(server: EmbeddingServer) -> None:
    server.next.statuses = [503] * 9
    with pytest.raises(
        UnavailableError, match=r"does not answer: status 503 \(up to 4 attempts within 60 s\)"
    ) as fault:
        provider("openai", server).embed("hello", 4, Purpose.QUERY)
    assert KEY not in str(fault.value)
    assert len(server.asked) == 4


def test_a_refusal_is_not_tried_again_and_shows_what_the_service_said(server: EmbeddingServer) -> None:
    server.next.statuses = [401]
    with pytest.raises(InvalidRequestError, match=r"refused the request with status 401.*as told") as fault:
        provider("openai", server).embed("hello", 4, Purpose.QUERY)
    assert KEY not in str(fault.value)
    assert len(server.asked) == 1


def test_a_service_that_is_silent_is_asked_again(server: EmbeddingServer) -> None:
    server.next.silent = 1
    made = provider("openai", server, OMNIGRAPH_EMBED_TIMEOUT_MS="200").embed("hello", 4, Purpose.QUERY)
    assert len(made) == 4
    assert len(server.asked) == 2


def test_a_service_that_is_not_there_is_named() -> None:
    with embedding_server() as gone:
        url = gone.url
    settings = {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_BASE_URL": url, "OPENAI_API_KEY": KEY}
    with pytest.raises(UnavailableError, match=f"provider at {url}/embeddings does not answer"):
        choose_provider(settings, clock=ManualClock()).embed("hello", 4, Purpose.QUERY)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not json", "answered with something that is not JSON"),
        (b"{}", "answered with no vector"),
        (b'{"data": []}', "answered with no vector"),
        (b'{"data": [{"embedding": [1, 2, 3]}]}', "answered with 3 dimensions instead of 4"),
        (b'{"data": [{"embedding": [0, 0, 0, 0]}]}', "a vector that has no direction"),
        (b'{"data": [{"embedding": [1e999, 0, 0, 0]}]}', "a vector that has no direction"),
        (b'{"data": [{"embedding": "1234"}]}', "answered with 0 dimensions instead of 4"),
    ],
)
def test_an_answer_that_is_no_vector_is_refused(server: EmbeddingServer, body: bytes, message: str) -> None:
    server.next.bodies = [body]
    with pytest.raises(UnavailableError, match=message):
        provider("openai", server).embed("hello", 4, Purpose.QUERY)


def test_the_mock_provider_is_the_same_everywhere() -> None:
    made = MockProvider().embed("hello", 4, Purpose.QUERY)
    assert made.tolist() == pytest.approx([-0.352814, 0.574378, 0.491501, -0.551397], abs=1e-6)
    assert (
        choose_provider({"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}).embed("hello", 4, Purpose.QUERY).tolist() == made.tolist()
    )
    assert (
        choose_provider({"OMNIGRAPH_EMBED_PROVIDER": "mock"}).embed("hello", 4, Purpose.DOCUMENT).tolist()
        == made.tolist()
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "x"},
            r"unknown embedding provider 'x' \(expected openai-compatible\|openai\|gem",
        ),
        ({}, "OPENROUTER_API_KEY or OPENAI_API_KEY is required for the openai-compatible embedding provider"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "gemini"}, "GEMINI_API_KEY is required for the gemini embedding provider"),
        ({"OPENAI_API_KEY": "k", "OMNIGRAPH_EMBED_TIMEOUT_MS": "soon"}, "OMNIGRAPH_EMBED_TIMEOUT_MS must be a whole"),
        ({"OPENAI_API_KEY": "k", "OMNIGRAPH_EMBED_DEADLINE_MS": "-1"}, "OMNIGRAPH_EMBED_DEADLINE_MS must be a whole"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        choose_provider(settings)


def test_the_local_model_knows_what_texts_mean_without_any_network() -> None:
    local = choose_provider({"OMNIGRAPH_EMBED_PROVIDER": "local"})
    cat, feline, taxes = (
        local.embed(text, 384, Purpose.QUERY)
        for text in ("The cat sits outside", "A feline is outdoors", "Quarterly tax accounting rules")
    )
    assert local.model == "all-MiniLM-L6-v2"
    assert float(cat @ feline) > 0.5
    assert float(cat @ taxes) < 0.2
    # The first numbers that the model's authors publish for this sentence.
    example = local.embed("This is an example sentence", 384, Purpose.QUERY)
    assert example[:4].tolist() == pytest.approx([0.0676569, 0.0634960, 0.0487131, 0.0793050], abs=2e-6)


def test_the_local_model_refuses_another_dimension() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"makes 384 dimensions, and the property has 8; declare it as Vector"
    ):
        choose_provider({"OMNIGRAPH_EMBED_PROVIDER": "local"}).embed("x", 8, Purpose.QUERY)


# --- what happens on the way ------------------------------------------------------------------------------------------


def waiting(server: EmbeddingServer, **more: str) -> tuple[Provider, ManualClock]:
    clock = ManualClock()
    settings = {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
    return choose_provider(settings | more, clock=clock), clock


def test_a_service_that_says_when_to_come_back_is_asked_again_then(server: EmbeddingServer) -> None:
    server.next.statuses, server.next.retry_after = [429, 429], "7"
    service, clock = waiting(server)
    assert len(service.embed("hello", 4, Purpose.QUERY)) == 4
    assert (len(server.asked), clock.monotonic()) == (3, 14.0)


def test_a_service_that_wants_to_be_left_alone_for_longer_than_there_is_time_is_given_up_at_once(
    server: EmbeddingServer,
) -> None:
    server.next.statuses, server.next.retry_after = [429] * 9, "3600"
    service, clock = waiting(server)
    with pytest.raises(UnavailableError, match="does not answer: status 429, and asks for 3600 s"):
        service.embed("hello", 4, Purpose.QUERY)
    assert (len(server.asked), clock.monotonic()) == (1, 0.0)


@pytest.mark.parametrize("said", ["soon", "-1", "Wed, 21 Oct 2026 07:28:00 GMT", "1.5", ""])
def test_a_time_to_come_back_that_is_no_number_of_seconds_is_passed_over(server: EmbeddingServer, said: str) -> None:
    server.next.statuses, server.next.retry_after = [503], said
    service, clock = waiting(server, OMNIGRAPH_EMBED_RETRY_BACKOFF_MS="250")
    service.embed("hello", 4, Purpose.QUERY)
    assert clock.monotonic() == 0.25


def test_an_answer_that_is_cut_off_is_asked_for_again(server: EmbeddingServer) -> None:
    server.next.cut = 2
    service, _ = waiting(server)
    assert np.allclose(service.embed("hello", 4, Purpose.QUERY), MockProvider().embed("hello", 4, Purpose.QUERY))
    assert len(server.asked) == 3
    server.next.cut = 9
    with pytest.raises(UnavailableError, match="does not answer: peer closed connection"):
        service.embed("hello", 4, Purpose.QUERY)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_key_goes_nowhere_else(server: EmbeddingServer, status: int) -> None:
    with embedding_server() as other:
        server.next.statuses, server.next.location = [status], f"{other.url}/embeddings"
        with pytest.raises(InvalidRequestError, match=f"refused the request with status {status}"):
            provider("openai", server).embed("hello", 4, Purpose.QUERY)
        assert other.asked == []


def test_a_proxy_that_the_environment_names_is_used(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url)
    settings = {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": KEY}
    away = settings | {"OMNIGRAPH_EMBED_BASE_URL": "http://embeddings.invalid/v1"}

    assert len(choose_provider(away, clock=ManualClock()).embed("hello", 4, Purpose.QUERY)) == 4

    assert [asked.path for asked in server.asked] == ["http://embeddings.invalid/v1/embeddings"]
    with embedding_server() as near:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        provider("openai", near).embed("hello", 4, Purpose.QUERY)
        assert [asked.path for asked in near.asked] == ["/embeddings"]
    assert len(server.asked) == 1


def test_many_and_long_texts_are_sent_one_by_one(server: EmbeddingServer) -> None:
    service = provider("openai", server)
    texts = ["a" * 1_000_000, "", "😀" * 1_000, "line\nbreak\u0000"]
    for text in texts:
        assert len(service.embed(text, 8, Purpose.DOCUMENT)) == 8
    assert [asked.body["input"] for asked in server.asked] == [[text] for text in texts]
