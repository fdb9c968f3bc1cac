"""Simulated time: a scheduler that gives the turn to one host at a time, and the clocks of the hosts."""

import random  # noqa: TID251  (a universe is a function of its seed)
import threading
from collections.abc import Callable

from omnigraph.ids import encode

EPOCH_US = 1_767_225_600_000_000
BEGIN_S = 100_000.0


class Scheduler:
    """Gives the turn to one host at a time; simulated time passes between turns."""

    def __init__(self, chance: random.Random, before_jump: Callable[[], None]) -> None:
        self.chance = chance
        self.now_s = BEGIN_S
        self._before_jump = before_jump
        self._wakes: dict[str, float] = {}
        self._batons: dict[str, threading.Semaphore] = {}

    def run(self, works: dict[str, Callable[[], None]]) -> None:
        """Run all works to their ends."""
        failed: list[BaseException] = []
        over = threading.Semaphore(0)

        def one(name: str, work: Callable[[], None]) -> None:
            self._wait(name)
            try:
                work()
            except BaseException as fault:  # noqa: BLE001  (reported by the thread that waits)
                failed.append(fault)
            del self._wakes[name]
            if self._wakes:
                self._batons[self._choose()].release()
            else:
                over.release()

        self._wakes = dict.fromkeys(works, self.now_s)
        self._batons = {name: threading.Semaphore(0) for name in works}
        threads = [threading.Thread(target=one, args=item, name=item[0], daemon=True) for item in works.items()]
        for thread in threads:
            thread.start()
        self._batons[self._choose()].release()
        assert over.acquire(timeout=240), "the hosts have got stuck"
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    def switch(self, name: str, delay_s: float = 0.0) -> None:
        """Let others go first; return when it is this host's turn again, `delay_s` later at the earliest."""
        self._wakes[name] = self.now_s + delay_s
        chosen = self._choose()
        if chosen != name:
            self._batons[chosen].release()
            self._wait(name)

    def jump(self, seconds: float) -> None:
        """Let time pass while nobody does anything."""
        self._before_jump()
        self.now_s += seconds

    def _wait(self, name: str) -> None:
        assert self._batons[name].acquire(timeout=240), f"{name} never got its turn"

    def _choose(self) -> str:
        self.now_s += self.chance.random() * 0.05
        earliest = min(self._wakes.values())
        if earliest > self.now_s:
            self.jump(earliest - self.now_s)
        return self.chance.choice([name for name, wake in self._wakes.items() if wake <= self.now_s])


class HostClock:
    """A host's own clocks: its wall time is off by some seconds, its monotonic clock stands still while suspended."""

    def __init__(self, scheduler: Scheduler, name: str, skew_s: float) -> None:
        self._scheduler = scheduler
        self._name = name
        self._skew_s = skew_s
        self.suspended_s = 0.0

    def now_us(self) -> int:
        """Wall time."""
        return EPOCH_US + int((self._scheduler.now_s + self._skew_s) * 1_000_000)

    def monotonic(self) -> float:
        """Seconds since the universe began, less those this host was suspended for."""
        return self._scheduler.now_s - self.suspended_s

    def sleep(self, seconds: float) -> None:
        """Let others go on meanwhile."""
        if threading.current_thread().name == self._name:
            self._scheduler.switch(self._name, seconds)


class SeededIds:
    """ULIDs that are a function of a seed."""

    def __init__(self, clock: HostClock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self._last = 0

    def new(self) -> str:
        """Return a fresh one, greater than those before."""
        fresh = self._clock.now_us() // 1_000 << 80 | self._chance.getrandbits(80)
        self._last = max(fresh, self._last + 1)
        return encode(self._last)
