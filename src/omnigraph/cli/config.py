"""The operator's configuration: servers, clusters, profiles, defaults and aliases, and the tokens of servers.

Read from `$OMNIGRAPH_HOME/config.yaml`, by default `~/.omnigraph/config.yaml`; without a file, it is empty.
"""

import configparser
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.client.tokens import check_token
from omnigraph.errors import InvalidRequestError

_KNOWN = {
    "operator": {"actor"},
    "servers": None,
    "clusters": None,
    "defaults": {"output", "table_max_column_width", "table_cell_layout", "server", "store", "default_graph"},
    "profiles": None,
    "aliases": None,
}
_OTHERS_MODE = 0o077


@dataclass(frozen=True, slots=True)
class Config:
    """The operator's configuration.

    Attributes:
        path: its file, which need not exist.
        actor: the actor of writes without `--as`.
        servers: URLs of servers, by name.
        clusters: roots of clusters, by name.
        defaults: scope and output settings for commands without flags.
        profiles: combinations of a server, cluster or store with a graph.
        aliases: stored queries by short names.
    """

    path: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def home() -> Path:
    """Return the folder of the configuration."""
    chosen = os.environ.get("OMNIGRAPH_HOME")
    return Path(chosen) if chosen else Path.home() / ".omnigraph"


def read(warn: Callable[[str], None]) -> Config:
    """Read the configuration of the current user.

    Raises:
        InvalidRequestError: the file is not a valid configuration.
    """
    path = home() / "config.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(f"the configuration {path} cannot be read: {error}") from error
    import yaml  # noqa: PLC0415  (only if there is a configuration)

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _invalid(f"the configuration {path} is not YAML: {error}") from error
    if document is None:
        return Config(path)  # only comments
    if not isinstance(document, dict):
        raise _invalid(f"the configuration {path} must be a mapping")
    for key, value in document.items():
        _warn_of_unknown(path, key, value, warn)
    defaults = _mapping(document, "defaults", path)
    if "server" in defaults and "store" in defaults:
        raise _invalid(f"the configuration {path} names both a server and a store under defaults; keep one")
    profiles = {name: _profile(path, name, value) for name, value in _mapping(document, "profiles", path).items()}
    return Config(
        path,
        actor=_mapping(document, "operator", path).get("actor"),
        servers={
            name: _member(path, f"servers.{name}", value, "url") for name, value in _items(document, "servers", path)
        },
        clusters={
            name: _member(path, f"clusters.{name}", value, "root") for name, value in _items(document, "clusters", path)
        },
        defaults=defaults,
        profiles=profiles,
        aliases=_mapping(document, "aliases", path),
    )


def token_for(config: Config, url: str) -> str | None:
    """Return the token for a URL: that of the configured server whose URL is its longest prefix.

    A prefix ends at a path separator: the token of `https://host` is not for `https://host.elsewhere`.
    """
    matching = [
        (len(base), name)
        for name, base in config.servers.items()
        if f"{url.rstrip('/')}/".startswith(f"{base.rstrip('/')}/")
    ]
    if matching:
        name = max(matching)[1]
        from_variable = os.environ.get(f"OMNIGRAPH_TOKEN_{name.upper().replace('-', '_')}")
        if from_variable:
            return from_variable
        stored = tokens().get(name)
        if stored is not None:
            return stored
    return os.environ.get("OMNIGRAPH_BEARER_TOKEN") or None


def tokens() -> dict[str, str]:
    """Return the stored tokens, by server name.

    Raises:
        InvalidRequestError: other users may read the file, or it is damaged.
    """
    path = home() / "credentials"
    if not path.exists():
        return {}
    mode = path.stat().st_mode
    if mode & _OTHERS_MODE:
        raise _invalid(f"the credentials {path} may be read by others (mode {mode & 0o777:04o}); run: chmod 600 {path}")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except configparser.Error as error:
        raise _invalid(f"the credentials {path} are damaged: {error}") from error
    return {name: parser[name]["token"] for name in parser.sections() if "token" in parser[name]}


def store_token(name: str, token: str) -> None:
    """Store the token of a server.

    Raises:
        InvalidRequestError: the name or the token cannot be stored, or other users may read the file.
    """
    is_section = name and name == name.strip() and name.isprintable() and not set(name) & set("[]")
    if not is_section or name == configparser.DEFAULTSECT:
        raise InvalidRequestError(f"{name!r} is not a server name: give the one in the configuration")
    check_token(token)
    _write_tokens({**tokens(), name: token})


def delete_token(name: str) -> bool:
    """Delete the token of a server; False if none was stored.

    Raises:
        InvalidRequestError: other users may read the file.
    """
    stored = tokens()
    removed = stored.pop(name, None) is not None
    _write_tokens(stored)
    return removed


def _write_tokens(stored: Mapping[str, str]) -> None:
    path = home() / "credentials"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"credentials.{os.getpid()}")
    parser = configparser.ConfigParser(interpolation=None)
    for name, token in sorted(stored.items()):
        parser[name] = {"token": token}
    # Created with its final mode, so that other users can never read it, and replaced at once.
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        parser.write(file)
    unfinished.replace(path)


def _warn_of_unknown(path: Path, key: object, value: object, warn: Callable[[str], None]) -> None:
    if key not in _KNOWN:
        warn(f"warning: unknown key '{key}' in {path}")
        return
    members = _KNOWN[str(key)]
    if members is not None and isinstance(value, dict):
        for member in value:
            if member not in members:
                warn(f"warning: unknown key '{key}.{member}' in {path}")


def _invalid(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code="bad_configuration")


def _mapping(document: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f"'{key}' in {path} must be a mapping")
    return {str(name): item for name, item in value.items()}


def _items(document: Mapping[str, Any], key: str, path: Path) -> list[tuple[str, Any]]:
    return list(_mapping(document, key, path).items())


def _member(path: Path, where: str, value: object, member: str) -> str:
    if not isinstance(value, dict) or not isinstance(value.get(member), str):
        raise _invalid(f"'{where}' in {path} must be a mapping with a '{member}'")
    return str(value[member])


def _profile(path: Path, name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"the profile '{name}' in {path} must be a mapping")
    bound = [kind for kind in ("server", "cluster", "store") if kind in value]
    if len(bound) != 1:
        raise _invalid(
            f"the profile '{name}' in {path} must name exactly one of server, cluster and store; it names "
            f"{' and '.join(bound) or 'none'}"
        )
    return value
