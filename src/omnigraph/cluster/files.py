"""The files that a configuration names: read from its folder, and from nowhere else."""

from pathlib import Path

from omnigraph.cluster.diagnostics import Diagnostics


def resolve_inside(folder: Path, name: str) -> Path | None:
    """The path of a file or folder that a configuration names; None where that leads out of its folder.

    Links are followed first: one that leads out leads out.
    """
    if "\x00" in name or Path(name).is_absolute():
        return None
    base = folder.resolve()
    found = (base / name).resolve()
    return found if found.is_relative_to(base) else None


def read_file(folder: Path, name: str, *, code: str, path: str, diagnostics: Diagnostics) -> bytes | None:
    """The content of a file that a configuration names.

    Args:
        folder: of the configuration.
        name: as it stands there.
        code: of the diagnostic where it cannot be read.
        path: where it stands there.
        diagnostics: gets that diagnostic.

    Returns:
        The bytes; None where it was said why not.
    """
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
