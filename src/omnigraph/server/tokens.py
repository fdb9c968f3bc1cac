"""Bearer tokens: authenticate actors. Only digests of tokens are kept."""

import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import InvalidRequestError
from omnigraph.server.aws_secret import read_secret
from omnigraph.server.errors import Refusal
from omnigraph.server.logs import log

DEFAULT_ACTOR = "default"
# Begins the value of a token in a file that holds only its SHA-256 digest.
DIGEST = "sha256:"
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
_ONE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
_FILE = TOKENS_FILE
_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
_SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Known bearer tokens.

    Attributes:
        actors: SHA-256 digest of the token, by actor.
    """

    actors: Mapping[str, bytes]

    def __bool__(self) -> bool:
        return bool(self.actors)

    def authenticate(self, authorization: str | None) -> str:
        """Return the actor of an `Authorization` header.

        Raises:
            Refusal: the token is missing or unknown.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("missing bearer token")
        # Headers are decoded as Latin-1; configured tokens are UTF-8.
        actor = self._find_actor(token.encode("latin-1", "replace"))
        if actor is None:
            raise _unauthorized("invalid bearer token")
        return actor

    def redact(self, text: str) -> str:
        """Replace path segments that are tokens by stars, for logs."""
        if not self.actors:
            return text
        segments = text.split("/")
        return "/".join("***" if self._find_actor(segment.encode()) is not None else segment for segment in segments)

    def _find_actor(self, token: bytes) -> str | None:
        digest = _digest(token)
        found = None
        for actor, expected in self.actors.items():
            # Compare with all of them: the time taken must reveal nothing.
            if hmac.compare_digest(digest, expected):
                found = actor
        return found

    def authenticate_if_known(self, authorization: str | None) -> str | None:
        """Return the actor of an `Authorization` header on a public route; None if the token is missing or unknown."""
        try:
            return self.authenticate(authorization)
        except Refusal:
            return None


def load_tokens(environment: Mapping[str, str]) -> Tokens:
    """Load the tokens that environment variables hold or point to; none if no variable is set.

    Raises:
        InvalidRequestError: a source cannot be read, or an actor or token is blank or duplicate.
    """
    actors: dict[str, bytes] = {}
    for actor, token in ((actor.strip(), token.strip()) for actor, token in _read_pairs(environment)):
        if not actor:
            raise InvalidRequestError("a bearer token belongs to a blank actor")
        if not token:
            raise InvalidRequestError(f"the bearer token of actor '{actor}' is blank")
        if actor in actors:
            raise InvalidRequestError(f"actor '{actor}' has two bearer tokens")
        digest = _parse_digest(token, actor) if token.startswith(DIGEST) else _digest(token.encode())
        if digest in actors.values():
            raise InvalidRequestError(f"actor '{actor}' has the bearer token of another actor")
        actors[actor] = digest
    return Tokens(actors)


def _read_pairs(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read actors and tokens from the AWS secret alone if one is set, else from the other sources."""
    if secret := environment.get(_SECRET):
        return _parse_pairs(read_secret(secret, environment), _SECRET)
    pairs: list[tuple[str, str]] = []
    if environment.get(_ONE) is not None:
        pairs.append((DEFAULT_ACTOR, environment[_ONE]))
    if environment.get(_FILE) is not None:
        pairs += _parse_pairs(_read_file(environment[_FILE]), _FILE)
    elif environment.get(_JSON) is not None:
        pairs += _parse_pairs(environment[_JSON], _JSON)
    return pairs


def _read_file(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise InvalidRequestError(f"the bearer tokens in {file} cannot be read: {type(fault).__name__}") from None


def _parse_pairs(text: str, source: str) -> list[tuple[str, str]]:
    wrong = InvalidRequestError(f"{source} must hold a JSON object of actors and their tokens")
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError:
        # Not chained: the fault quotes the text, and the text is secret.
        raise wrong from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) and isinstance(pair[1], str) for pair in pairs):
        raise wrong
    return pairs


def _parse_digest(text: str, actor: str) -> bytes:
    try:
        digest = bytes.fromhex(text.removeprefix(DIGEST))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise InvalidRequestError(f"the digest of the bearer token of actor '{actor}' must be 64 hexadecimal digits")
    return digest


class TokenSource:
    """The tokens of a server. A token file that changes is read again, so that revoking needs no restart."""

    def __init__(self, tokens: Tokens, environment: Mapping[str, str] | None) -> None:
        """Watch the token file.

        Args:
            tokens: as loaded at the start.
            environment: the variables they came from; None if they cannot change.
        """
        self._tokens = tokens
        self._environment = environment
        self._file = None if environment is None or environment.get(_SECRET) else environment.get(_FILE)
        self._seen = self._look()

    def current(self) -> Tokens:
        """Return the tokens that are valid now; a file that cannot be read leaves the old ones."""
        if self._file is None:
            return self._tokens
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            assert self._environment is not None
            try:
                self._tokens = load_tokens(self._environment)
                log("tokens reloaded", actors=len(self._tokens.actors))
            except InvalidRequestError as fault:
                log("tokens not reloaded", level=logging.ERROR, reason=str(fault))
        return self._tokens

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = Path(self._file).stat() if self._file is not None else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def read_token_file(path: Path) -> dict[str, str]:
    """Return the actors of a token file with their tokens or digests.

    Raises:
        InvalidRequestError: the file cannot be read.
    """
    return dict(_parse_pairs(_read_file(str(path)), str(path)))


def change_token_file(path: Path, change: Callable[[dict[str, str]], None]) -> dict[str, str]:
    """Change the actors and tokens of a file, as a whole; return them.

    Raises:
        InvalidRequestError: the file cannot be read or written.
    """
    pairs = read_token_file(path) if path.exists() else {}
    change(pairs)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(pairs, file, indent=2)
            file.write("\n")
        unfinished.replace(path)
    except OSError as fault:
        raise InvalidRequestError(f"the bearer tokens in {path} cannot be written: {fault.strerror}") from None
    return pairs


def new_token() -> tuple[str, str]:
    """Return a new token, and the digest of it that a token file holds."""
    token = f"og_{secrets.token_urlsafe(32)}"
    return token, f"{DIGEST}{_digest(token.encode()).hex()}"


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, code="unauthorized", headers={"WWW-Authenticate": "Bearer"})
