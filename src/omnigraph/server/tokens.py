"""Bearer tokens: which actor a request is of. Only their digests are kept."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import InvalidRequestError
from omnigraph.server.aws_secret import secret_text
from omnigraph.server.errors import Refusal

DEFAULT_ACTOR = "default"
_ONE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
_SECRET = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Who may come in.

    Attributes:
        actors: for each actor, the SHA-256 digest of its token.
    """

    actors: Mapping[str, bytes]

    def __bool__(self) -> bool:
        return bool(self.actors)

    def actor_of(self, authorization: str | None) -> str:
        """Whose request it is.

        Args:
            authorization: the header, if there is one.

        Returns:
            The actor.

        Raises:
            Refusal: there is no token, or it is nobody's.
        """
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _unauthorized("missing bearer token")
        # Headers come as Latin-1; what was typed is UTF-8.
        found = self._whose(token.encode("latin-1", "replace"))
        if found is None:
            raise _unauthorized("invalid bearer token")
        return found

    def hidden(self, text: str) -> str:
        """A text of slashes and words, without those words that are tokens: for what is written down.

        Args:
            text: what a caller sent where no token belongs.

        Returns:
            The text; stars in the place of a token.
        """
        if not self.actors:
            return text
        return "/".join("***" if self._whose(each.encode()) is not None else each for each in text.split("/"))

    def _whose(self, token: bytes) -> str | None:
        digest = _digest_of(token)
        found = None
        for actor, expected in self.actors.items():
            # All of them, whichever it is: how long it takes tells nothing.
            if hmac.compare_digest(digest, expected):
                found = actor
        return found

    def known(self, authorization: str | None) -> str | None:
        """Whose request it is, where anybody may ask.

        Args:
            authorization: the header, if there is one.

        Returns:
            The actor; None where there is no token, or it is nobody's.
        """
        try:
            return self.actor_of(authorization)
        except Refusal:
            return None


def tokens_of(environment: Mapping[str, str]) -> Tokens:
    """The tokens that the environment names.

    Args:
        environment: variables by name.

    Returns:
        Tokens: none where nothing is said.

    Raises:
        InvalidRequestError: a source cannot be read, or an actor or token is blank or there twice.
    """
    actors: dict[str, bytes] = {}
    for actor, token in ((actor.strip(), token.strip()) for actor, token in _named(environment)):
        if not actor:
            raise InvalidRequestError("a bearer token belongs to a blank actor")
        if not token:
            raise InvalidRequestError(f"the bearer token of actor '{actor}' is blank")
        if actor in actors:
            raise InvalidRequestError(f"actor '{actor}' has two bearer tokens")
        digest = _digest_of(token.encode())
        if digest in actors.values():
            raise InvalidRequestError(f"actor '{actor}' has the bearer token of another actor")
        actors[actor] = digest
    return Tokens(actors)


def _named(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Actors and their tokens, from a secret of AWS and nowhere else; or from whatever else is named."""
    if secret := environment.get(_SECRET):
        return _pairs(secret_text(secret, environment), _SECRET)
    pairs: list[tuple[str, str]] = []
    if environment.get(_ONE) is not None:
        pairs.append((DEFAULT_ACTOR, environment[_ONE]))
    if environment.get(_FILE) is not None:
        pairs += _pairs(_text_of(environment[_FILE]), _FILE)
    elif environment.get(_JSON) is not None:
        pairs += _pairs(environment[_JSON], _JSON)
    return pairs


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        raise InvalidRequestError(f"the bearer tokens in {file} cannot be read: {type(fault).__name__}") from None


def _pairs(text: str, source: str) -> list[tuple[str, str]]:
    wrong = InvalidRequestError(f"{source} must hold a JSON object of actors and their tokens")
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError:
        # Not chained: the fault quotes the text, and the text is secret.
        raise wrong from None
    if not isinstance(pairs, list) or not all(isinstance(each, tuple) and isinstance(each[1], str) for each in pairs):
        raise wrong
    return pairs


def _digest_of(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, message, code="unauthorized", headers={"WWW-Authenticate": "Bearer"})
