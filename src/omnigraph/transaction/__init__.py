"""How one writer's changes become visible, all or none."""
