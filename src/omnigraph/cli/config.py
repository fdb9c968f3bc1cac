"""The operator's configuration: servers, clusters, profiles, defaults and aliases, and the tokens of servers.

It lies in `$OMNIGRAPH_HOME/config.yaml`, by default `~/.omnigraph/config.yaml`; where there is none, all is empty.
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
_PRIVATE = 0o077
TABLE_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Config:
    """What the operator configured.

    Attributes:
        path: of the file, whether or not it is there.
        actor: who writes, where no flag says.
        servers: addresses of servers, by name.
        clusters: roots of clusters, by name.
        defaults: what to use where nothing is said.
        profiles: bundles of a server, cluster or store with a graph.
        aliases: stored queries under short names.
    """

    path: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def home() -> Path:
    """The folder of the configuration."""
    chosen = os.environ.get("OMNIGRAPH_HOME")
    return Path(chosen) if chosen else Path.home() / ".omnigraph"


def read(warn: Callable[[str], None]) -> Config:
    """The configuration of whoever runs this.

    Raises:
        InvalidRequestError: the file is no configuration.
    """
    path = home() / "config.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config(path)
    except (OSError, UnicodeDecodeError) as fault:
        raise _wrong(f"the configuration {path} cannot be read: {fault}") from fault
    import yaml  # noqa: PLC0415  (only where there is a configuration)

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise _wrong(f"the configuration {path} is not YAML: {fault}") from fault
    if found is None:
        return Config(path)  # nothing but comments
    if not isinstance(found, dict):
        raise _wrong(f"the configuration {path} must be a mapping")
    for key, value in found.items():
        _check(path, key, value, warn)
    defaults = _mapping(found, "defaults", path)
    if "server" in defaults and "store" in defaults:
        raise _wrong(f"the configuration {path} names both a server and a store under defaults; keep one")
    profiles = {name: _profile(path, name, value) for name, value in _mapping(found, "profiles", path).items()}
    return Config(
        path,
        actor=_mapping(found, "operator", path).get("actor"),
        servers={
            name: _member(path, f"servers.{name}", value, "url") for name, value in _items(found, "servers", path)
        },
        clusters={
            name: _member(path, f"clusters.{name}", value, "root") for name, value in _items(found, "clusters", path)
        },
        defaults=defaults,
        profiles=profiles,
        aliases=_mapping(found, "aliases", path),
    )


def token_for(config: Config, url: str) -> str | None:
    """The token for a server's address: that of the configured server whose address is the longest prefix of it.

    A prefix ends where a part of the address ends: the token of `https://host` is not for `https://host.elsewhere`.
    """
    fitting = [
        (len(base), name)
        for name, base in config.servers.items()
        if f"{url.rstrip('/')}/".startswith(f"{base.rstrip('/')}/")
    ]
    if fitting:
        name = max(fitting)[1]
        from_variable = os.environ.get(f"OMNIGRAPH_TOKEN_{name.upper().replace('-', '_')}")
        if from_variable:
            return from_variable
        stored = tokens().get(name)
        if stored is not None:
            return stored
    return os.environ.get("OMNIGRAPH_BEARER_TOKEN") or None


def tokens() -> dict[str, str]:
    """The remembered tokens, by server name.

    Raises:
        InvalidRequestError: others may read the file, or it is damaged.
    """
    path = home() / "credentials"
    if not path.exists():
        return {}
    mode = path.stat().st_mode
    if mode & _PRIVATE:
        raise _wrong(f"the credentials {path} may be read by others (mode {mode & 0o777:04o}); run: chmod 600 {path}")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except configparser.Error as fault:
        raise _wrong(f"the credentials {path} are damaged: {fault}") from fault
    return {name: parser[name]["token"] for name in parser.sections() if "token" in parser[name]}


def remember(name: str, token: str | None) -> bool:
    """Store the token of a server, or with None forget it; False where there was none to forget.

    Raises:
        InvalidRequestError: the name or the token cannot stand in the file, or others may read it.
    """
    if token is not None:
        _check_storable(name, token)
    known = tokens()
    had = name in known
    if token is None:
        known.pop(name, None)
    else:
        known[name] = token
    path = home() / "credentials"
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f"credentials.{os.getpid()}")
    parser = configparser.ConfigParser(interpolation=None)
    for each, value in sorted(known.items()):
        parser[each] = {"token": value}
    # Never readable by others, not even for a moment, and never half written.
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        parser.write(file)
    written.replace(path)
    return had


def _check_storable(name: str, token: str) -> None:
    heads = name and name == name.strip() and name.isprintable() and not set(name) & set("[]")
    if not heads or name == configparser.DEFAULTSECT:
        raise InvalidRequestError(f"{name!r} is no name of a server: give it as it stands in the configuration")
    check_token(token)


def _check(path: Path, key: object, value: object, warn: Callable[[str], None]) -> None:
    if key not in _KNOWN:
        warn(f"warning: unknown key '{key}' in {path}")
        return
    members = _KNOWN[str(key)]
    if members is not None and isinstance(value, dict):
        for member in value:
            if member not in members:
                warn(f"warning: unknown key '{key}.{member}' in {path}")


def _wrong(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, code="bad_configuration")


def _mapping(found: Mapping[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = found.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong(f"'{key}' in {path} must be a mapping")
    return {str(name): each for name, each in value.items()}


def _items(found: Mapping[str, Any], key: str, path: Path) -> list[tuple[str, Any]]:
    return list(_mapping(found, key, path).items())


def _member(path: Path, where: str, value: object, member: str) -> str:
    if not isinstance(value, dict) or not isinstance(value.get(member), str):
        raise _wrong(f"'{where}' in {path} must be a mapping with a '{member}'")
    return str(value[member])


def _profile(path: Path, name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(f"the profile '{name}' in {path} must be a mapping")
    bound = [each for each in ("server", "cluster", "store") if each in value]
    if len(bound) != 1:
        raise _wrong(
            f"the profile '{name}' in {path} must name exactly one of server, cluster and store; it names "
            f"{' and '.join(bound) or 'none'}"
        )
    return value
