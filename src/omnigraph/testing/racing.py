"""Several processes that want the same paths at the same moment."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence

from omnigraph.storage.object_store import ObjectExists, ObjectStore


def race_in_processes(
    make_store: Callable[[], ObjectStore], paths: Sequence[str], *, processes: int
) -> Sequence[Sequence[str]]:
    """Let processes put every path if it is absent, all in the same order and from the same moment on.

    Args:
        make_store (Callable[[], ObjectStore]): each process opens the store with it; must be picklable.
        paths (Sequence[str]): what they race for. The winner writes its number, from 0, into each.
        processes (int): how many.

    Returns:
        Sequence[Sequence[str]]: for each process the paths it won.
    """
    racers = [
        subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(processes)
    ]
    try:
        for number, racer in enumerate(racers):
            assert racer.stdin is not None
            pickle.dump((make_store, tuple(paths), number), racer.stdin)
            racer.stdin.flush()
        for racer in racers:
            assert racer.stdout is not None
            racer.stdout.readline()  # it is ready
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(b"go\n")
            racer.stdin.flush()
        return [json.loads(racer.communicate()[0]) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


def main() -> None:
    """What each process does: open the store, say so, wait for the start, try for every path, tell what it won."""
    make_store, paths, number = pickle.load(sys.stdin.buffer)
    store: ObjectStore = make_store()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.buffer.readline()
    won = []
    for path in paths:
        try:
            store.put_if_absent(path, str(number).encode())
        except ObjectExists:
            continue
        won.append(path)
    sys.stdout.write(json.dumps(won))


if __name__ == "__main__":
    main()
