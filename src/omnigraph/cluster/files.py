"""Read the files that a configuration names, only from inside its folder."""

from pathlib import Path

from omnigraph.cluster.diagnostics import Diagnostics


def resolve_inside(folder: Path, name: str) -> Path | None:
    """Resolve a path of a configuration; None if it leads out of the folder.

    Symbolic links are resolved first.
    """
    if "\x00" in name or Path(name).is_absolute():
        return None
    base = folder.resolve()
    found = (base / name).resolve()
    return found if found.is_relative_to(base) else None


def read_file(folder: Path, name: str, *, code: str, path: str, diagnostics: Diagnostics) -> bytes | None:
    """Read a UTF-8 file that a configuration names; None, with an error of the given code, if that fails."""
    found = resolve_inside(folder, name)
    if found is None:
        diagnostics.error(code, path, f"'{name}' leads out of the folder of the configuration")
        return None
    try:
        body = found.read_bytes()
        body.decode()
    except OSError as fault:
        diagnostics.error(code, path, f"'{name}' cannot be read: {fault.strerror}")
        return None
    except UnicodeDecodeError:
        diagnostics.error(code, path, f"'{name}' cannot be read: it is not UTF-8")
        return None
    return body
