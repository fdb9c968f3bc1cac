"""Serve the explorer page and its assets, all from this server."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from omnigraph.drawing.drawing import MODULES
from omnigraph.server.errors import Refusal

# No other host is contacted, and inline scripts and styles are not run.
_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _File:
    """A static file in memory, with its entity tag."""

    content: bytes
    media: str
    tag: str


@router.api_route("/", methods=["GET", "HEAD"])
def page(request: Request) -> Response:
    """Return the page."""
    return _file_response(request, "index.html")


@router.api_route("/explorer/{name}", methods=["GET", "HEAD"])
def file(request: Request, name: str) -> Response:
    """Return an asset of the page."""
    return _file_response(request, name)


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
def icon(request: Request) -> Response:
    """Return the icon."""
    return _file_response(request, "icon.svg")


def _file_response(request: Request, name: str) -> Response:
    # Look the name up among known files: a requested name never becomes a path.
    static_file = _load_files().get(name)
    if static_file is None:
        raise Refusal(404, f"file '{name}' not found", code="not_found")
    headers = _HEADERS | {"ETag": static_file.tag}
    if request.headers.get("if-none-match") == static_file.tag:
        return Response(status_code=304, headers=headers)
    return Response(static_file.content, headers=headers, media_type=static_file.media)


@cache
def _load_files() -> dict[str, _File]:
    static = files("omnigraph.server.explorer").joinpath("static")
    sources = {path.name: path for path in static.iterdir() if path.is_file()}
    # The drawing modules are shared with the pages that the command line writes.
    sources |= {name: files("omnigraph.drawing").joinpath(name) for name in MODULES}
    loaded = {}
    for name, source in sources.items():
        media = _MEDIA.get(f".{name.rpartition('.')[2]}")
        if media is not None:
            content = source.read_bytes()
            loaded[name] = _File(content, media, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return loaded
