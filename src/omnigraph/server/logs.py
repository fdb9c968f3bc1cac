"""Structured logs: one JSON object per line on stderr. Headers and bodies are never logged."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("omnigraph.server")
_FIELDS = "omnigraph_fields"
# Made once: `json.dumps` makes a new one for every call with options.
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """Format a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        document: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return _ENCODER.encode(document)


def log(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: object) -> None:
    """Log one event.

    Args:
        event: a short constant text.
        level: as in `logging`.
        error: its traceback is logged.
        fields: further members of the JSON object.
    """
    LOGGER.log(level, event, extra={_FIELDS: fields}, exc_info=error)


def log_to_stderr(level: str = "info") -> None:
    """Send all logging to stderr in this format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"  # the middleware logs requests, with their ids
    # uvicorn logs every start and stop, which we log ourselves. The others log requests that we send: URLs and, at the
    # debug level, contents may hold secrets.
    for name in ("uvicorn.error", "httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
