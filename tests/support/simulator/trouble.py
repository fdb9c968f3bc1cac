"""What goes wrong in a universe: how often, where, and for how long."""

import random  # noqa: TID251  (a universe is a function of its seed)
from dataclasses import dataclass

from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind

LOG_PREFIX = "__manifest/log/"
INTENT_PREFIX = "__recovery/"
DELAYS_S = (3.0, 90.0, 650.0, 5_000.0, 200_000.0)


@dataclass(frozen=True)
class Weather:
    """What a universe is like."""

    transient: float
    troubled: float
    remote: bool
    is_fenced: bool
    has_other_fence: bool
    root: str  # "stays", "restored" or "re-created"

    @staticmethod
    def drawn(chance: random.Random) -> "Weather":
        """Draw one: calm or rough, on a near or a far store, with a fence or without, with a root that may change."""
        is_fenced = chance.random() < 0.2
        return Weather(
            transient=chance.choice([0.0, 0.002, 0.02]),
            troubled=chance.choice([0.4, 0.8]),
            remote=chance.random() < 0.6,
            is_fenced=is_fenced,
            has_other_fence=is_fenced and chance.random() < 0.3,
            root=chance.choice(["stays"] * 6 + ["restored", "re-created"]),
        )


@dataclass
class Trouble:
    """One thing that goes wrong in an act: what, for how long, and before or after which request."""

    kind: str = ""
    seconds: float = 0.0
    place: str = ""
    countdown: int = -1

    @staticmethod
    def drawn(chance: random.Random, weather: Weather, *, is_write: bool) -> "Trouble":
        """Draw what goes wrong in one act: nothing, as often as not; in writes mostly where it matters most."""
        if chance.random() > weather.troubled:
            return Trouble()
        kind = chance.choice(["stand still", "stand still", "stand still", "cut off", "kill", "lose"])
        if kind == "stand still":
            kind = chance.choice(["pause", "suspend"])
        places = [LOG_PREFIX] * 4 + [f"after {LOG_PREFIX}", INTENT_PREFIX, "any"] if is_write else ["any", LOG_PREFIX]
        place = chance.choice(places)
        countdown = int(chance.expovariate(0.12)) if place == "any" else int(chance.random() < 0.2)
        return Trouble(kind, chance.choice(DELAYS_S), place, countdown)

    def is_due(self, kind: RequestKind, path: str, before: str) -> bool:
        """Count a request down; True for the one that it happens at."""
        if self.countdown < 0:
            return False
        if self.place.startswith("after "):
            matches = before.startswith(self.place[6:])
        else:
            matches = self.place == "any" or (path.startswith(self.place) and kind in DURABLE_REQUESTS)
        self.countdown -= matches
        return self.countdown < 0
