"""Structured logs: one JSON object per line on stderr. No header and no body is ever written."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("omnigraph.server")
_FIELDS = "omnigraph_fields"


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        document: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, ensure_ascii=False, default=str)


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: object) -> None:
    """Write one line.

    Args:
        event: what happened, in few words that do not change.
        level: how serious it is.
        error: whose traceback goes along.
        fields: what is known about it.
    """
    LOGGER.log(level, event, extra={_FIELDS: fields}, exc_info=error)


def log_to_stderr(level: str = "info") -> None:
    """Send everything that is logged to stderr, in this format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        each = logging.getLogger(name)
        each.handlers.clear()
        each.propagate = name != "uvicorn.access"  # requests are logged by the gate, with their ids
    # One tells of every start and stop, and what matters of that is logged here. The others tell of requests that we
    # send: their addresses, and at their lowest level what is in them, may hold secrets.
    for name in ("uvicorn.error", "httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
