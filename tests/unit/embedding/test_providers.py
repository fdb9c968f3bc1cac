"""Providers of embeddings: what they send, what they make of the answers, and what they say when there are none."""

from collections.abc import Iterator

import numpy as np
import pytest

from omnigraph.embedding.choose import chosen
from omnigraph.embedding.mock import MockProvider
from omnigraph.embedding.provider import Provider, Purpose
from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.testing.embedding_server import EmbeddingServer, embedding_server
from omnigraph.testing.manual_clock import ManualClock

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
    return chosen(settings | more, clock=ManualClock())


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
        chosen(settings, clock=ManualClock()).embed("hello", 4, Purpose.QUERY)


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
    assert chosen({"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}).embed("hello", 4, Purpose.QUERY).tolist() == made.tolist()
    assert chosen({"OMNIGRAPH_EMBED_PROVIDER": "mock"}).embed("hello", 4, Purpose.DOCUMENT).tolist() == made.tolist()


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
        chosen(settings)


def test_the_local_model_knows_what_texts_mean_without_any_network() -> None:
    local = chosen({"OMNIGRAPH_EMBED_PROVIDER": "local"})
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
        chosen({"OMNIGRAPH_EMBED_PROVIDER": "local"}).embed("x", 8, Purpose.QUERY)
