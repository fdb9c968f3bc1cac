"""Losing power for real: a file system on a loop device, of which only what has reached the device is kept.

Needs root, a loop device and `mkfs`; `unavailable` says what is missing. What the kernel still holds back when the
image is copied is lost, as it is when the current fails.
"""

import filecmp
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# XFS makes no file system smaller than 300 MB. The images are sparse.
_IMAGE_BYTES = 320 * 1024 * 1024
_FORMAT = {"ext4": ["-q", "-F"], "xfs": ["-q"]}
# ext4 commits its journal once a second: names reach the disk while a test waits for them.
_MOUNT = {"ext4": "loop,commit=1", "xfs": "loop,nouuid"}


def unavailable(kind: str) -> str | None:
    """Why no such file system can be mounted here; None where it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    return None if shutil.which(f"mkfs.{kind}") else f"there is no mkfs.{kind}"


class Disk:
    """One file system of its own."""

    def __init__(self, folder: Path, kind: str) -> None:
        """A disk whose image lies in `folder`; `kind` is "ext4" or "xfs"."""
        self._image = folder / "disk.img"
        self._kind = kind
        with self._image.open("wb") as image:
            image.truncate(_IMAGE_BYTES)
        _run(f"mkfs.{kind}", *_FORMAT[kind], str(self._image))

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """The folder it is mounted at."""
        place = self._image.with_suffix(".mounted")
        place.mkdir(exist_ok=True)
        _run("mount", "-t", self._kind, "-o", _MOUNT[self._kind], str(self._image), str(place))
        try:
            yield place
        finally:
            _run("umount", "--lazy", str(place))

    def after_power_cut(self, folder: Path) -> "Disk":
        """The disk as it would be if power failed now; the copy is of one moment, for it is made until two agree."""
        cut = object.__new__(Disk)
        cut._image, cut._kind = folder / "cut.img", self._kind
        again = folder / "again.img"
        _copy(self._image, again)
        while True:
            _copy(self._image, cut._image)
            if filecmp.cmp(cut._image, again, shallow=False):
                return cut
            cut._image, again = again, cut._image


def _copy(image: Path, target: Path) -> None:
    _run("cp", "--sparse=always", str(image), str(target))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
