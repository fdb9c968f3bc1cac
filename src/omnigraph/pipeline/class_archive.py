"""A cache of loaded classes, kept between runs: it halves the time that Spark takes to start.

The first run on a machine leaves one behind as it ends; later runs begin from it. It lies in the user's cache folder
under a name made of the Java and the Spark it belongs to. Whatever goes wrong with it, Spark starts without.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from omnigraph.pipeline.java import Java

# From here on Java keeps linked classes, not only parsed ones, and makes them without a base archive of its own.
_AHEAD_OF_TIME_MAJOR = 25


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Where the archive for one Java and one Spark is, or will be.

    Attributes:
        path: the archive.
        java: the Java it is for.
    """

    path: Path
    java: Java

    @property
    def is_there(self) -> bool:
        """Whether a run made it already."""
        return self.path.is_file()

    def making(self) -> Path:
        """Where this process writes it, until it is whole."""
        return self.path.with_suffix(f".{os.getpid()}.part")

    def options(self) -> list[str]:
        """Options of Java that use the archive, or make one."""
        # An archive that no longer fits is passed over, and said to nobody.
        quiet = "-Xlog:disable"
        if self.java.major >= _AHEAD_OF_TIME_MAJOR:
            return [quiet, f"-XX:AOTCache={self.path}" if self.is_there else f"-XX:AOTCacheOutput={self.making()}"]
        if self.is_there:
            return [quiet, "-Xshare:auto", f"-XX:SharedArchiveFile={self.path}"]
        return [quiet, "-Xshare:auto", f"-XX:ArchiveClassesAtExit={self.making()}"]

    def keep(self) -> None:
        """Put what the ended Java left behind in its place; another process may have been first, which does no harm."""
        made = self.making()
        try:
            if made.is_file() and made.stat().st_size:
                made.replace(self.path)
        except OSError:
            made.unlink(missing_ok=True)


def class_archive(java: Java, spark_home: Path, spark_version: str, cache: Path | None = None) -> ClassArchive | None:
    """The archive for a Java and a Spark.

    Args:
        spark_home: where Spark is; an archive fits only the very files it was made from.
        cache: the folder of archives; in the user's cache folder by default.

    Returns:
        ClassArchive | None: None where there is no folder that could be written to.
    """
    folder = cache or _user_cache()
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    exactly = hashlib.sha256(f"{java.home}\0{java.version}\0{spark_home}\0{spark_version}".encode()).hexdigest()[:12]
    return ClassArchive(folder / f"java-{java.version}-spark-{spark_version}-{exactly}.jsa", java)


def _user_cache() -> Path | None:
    named = os.environ.get("XDG_CACHE_HOME")
    if named:
        return Path(named) / "omnigraph"
    try:
        return Path.home() / ".cache" / "omnigraph"
    except RuntimeError:
        return None
