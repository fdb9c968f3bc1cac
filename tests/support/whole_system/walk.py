"""One walk: acts and looks in an order that only its seed decides."""

from collections.abc import Callable

from tests.support.whole_system.damage import Damage
from tests.support.whole_system.lines import Lines
from tests.support.whole_system.upkeep import Upkeep
from tests.support.whole_system.writes import Writes

STEPS = 200


class Walk(Writes, Lines, Upkeep, Damage):
    """One graph, a handle that lives as long as the walk, and the model."""

    def run(self, steps: int = STEPS) -> None:
        """Take so many steps, look at everything at the end, and remove the graph.

        Raises:
            AssertionError: the graph and the model differ; the notes have the seed and the last steps.
        """
        try:
            for _ in range(steps):
                self.step()
            self.look_at_everything()
            if self.chance.random() < 0.3:
                self.damage_and_quarantine()
        except BaseException as fault:
            fault.add_note(f"seed {self.seed}, after:\n" + "\n".join(self.trace[-60:]))
            raise
        finally:
            self.close()

    def between_merges(self) -> list[Callable[[], str | None]]:
        """Return what may happen between the two merges of a criss-cross."""
        return [self.update_row, self.write_rows, self.prune, self.sweep, self.optimize, self.cleanup]

    def step(self) -> None:
        """Do one thing at random, then look at something at random."""
        acts: list[tuple[int, Callable[[], str | None]]] = [
            (8, self.write_rows),
            (4, self.load_rows),
            (4, self.insert_row),
            (8, self.update_row),
            (3, self.delete_node),
            (2, self.delete_edges),
            (5, self.create_branch),
            (2, self.delete_branch),
            (9, self.merge),
            (3, self.criss_cross),
            (3, self.revert),
            (2, self.tag),
            (1, self.untag),
            (3, self.optimize),
            (3, self.prune),
            (3, self.sweep),
            (1, self.cleanup),
            (1, self.maintain),
            (3, self.change_schema),
        ]
        act = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        self.trace.append(f"{act.__name__} …")
        outcome = act()
        if outcome is None:
            self.trace.pop()
            return
        self.trace[-1] = f"{act.__name__}: {outcome}"
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
        self.look_at_something()
