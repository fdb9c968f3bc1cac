"""Every operation of the API document, called with what the document allows and with what it does not.

No answer is a fault of the server, and none has a status, a media type or a shape that the document does not name.
"""

import json
import os
from copy import deepcopy
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.served_here import InProcess

CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Requests to each operation; those that the document forbids take long to make up.
_MORE = int(os.environ.get("OMNIGRAPH_FUZZED_MORE", "1"))
EXAMPLES = {GenerationMode.POSITIVE: 6 * _MORE, GenerationMode.NEGATIVE: 1 * _MORE}
# Of random words none would name anything there is; so some of them are words that do.
WORDS = {
    "graph_id": ["library"],
    "branch": ["main", "other", "' or 1=1 --", "\x00", "no such branch"],
    "type": ["Book", "Author", "node:Book", "Wrote", "'\"", "nothing"],
    "from": ["main", "other", "nothing"],
    "to": ["main", "other", "nothing"],
}


@schemathesis.serializer("application/x-ndjson")
def _lines(_: SerializationContext, value: object) -> bytes:
    """A text as it is; anything else as a line of JSON."""
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="surrogatepass")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_operation_answers_with_a_fault_or_with_what_is_not_documented(
    serve: InProcess, mode: GenerationMode
) -> None:
    app: Any = serve().app
    document = deepcopy(app.openapi())
    operations = [(path, each) for path, methods in document["paths"].items() for each in methods.values()]
    for _, operation in operations:
        for parameter in operation.get("parameters", ()):
            words = WORDS.get(parameter["name"])
            if words is not None and mode is GenerationMode.POSITIVE:
                parameter["schema"] = {"enum": words}
    schema = schemathesis.openapi.from_dict(document)
    schema.app = app
    tried = set()
    with asgi.get_client(app) as client:
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            takes_something = "{" in operation.path or operation.body
            if mode is GenerationMode.NEGATIVE and not takes_something:
                continue

            @settings(
                max_examples=EXAMPLES[mode],
                derandomize=True,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: Case[Any]) -> None:
                case.call_and_validate(session=client, checks=CHECKS)

            call()
            tried.add(operation.path)
    assert tried >= {path for path, _ in operations if "{" in path}
