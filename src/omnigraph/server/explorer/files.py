"""The page of the explorer and what it loads: all of it from this server, and nothing from elsewhere."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from omnigraph.drawing.drawing import MODULES
from omnigraph.server.errors import Refusal

# Nothing comes from, or goes to, another host; nothing within the page is taken for a script or a style.
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
    """A file in memory."""

    content: bytes
    media: str
    tag: str


@router.api_route("/", methods=["GET", "HEAD"])
def page(request: Request) -> Response:
    """The page."""
    return _answered(request, "index.html")


@router.api_route("/explorer/{name}", methods=["GET", "HEAD"])
def file(request: Request, name: str) -> Response:
    """One of the files that the page loads."""
    return _answered(request, name)


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
def icon(request: Request) -> Response:
    """The picture that browsers ask for by this name."""
    return _answered(request, "icon.svg")


def _answered(request: Request, name: str) -> Response:
    # Only what was found when the first request came: no name that is asked for ever becomes a path.
    found = _all_files().get(name)
    if found is None:
        raise Refusal(404, f"there is no '{name}' here", code="not_found")
    headers = _HEADERS | {"ETag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media)


@cache
def _all_files() -> dict[str, _File]:
    static = files("omnigraph.server.explorer").joinpath("static")
    sources = {each.name: each for each in static.iterdir() if each.is_file()}
    # How drawings are seen has one source, here and in the pages that the command line writes.
    sources |= {name: files("omnigraph.drawing").joinpath(name) for name in MODULES}
    found = {}
    for name, source in sources.items():
        media = _MEDIA.get(f".{name.rpartition('.')[2]}")
        if media is not None:
            content = source.read_bytes()
            found[name] = _File(content, media, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
