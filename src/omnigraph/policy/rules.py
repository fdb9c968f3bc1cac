"""What a policy is: groups of actors, protected branches, and rules that allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What an actor may ask for."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"
    INVOKE_QUERY = "invoke_query"


class Scope(StrEnum):
    """On which branches a rule holds."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


class Kind(StrEnum):
    """What a policy file is for, as messages call it: one or more graphs, or the server itself."""

    GRAPH = "Graph"
    SERVER = "Server"


SERVER_ACTIONS = frozenset({Action.GRAPH_LIST})
BRANCH_ACTIONS = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
TARGET_ACTIONS = frozenset({Action.BRANCH_CREATE, Action.SCHEMA_APPLY, Action.BRANCH_DELETE, Action.BRANCH_MERGE})


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows a group some actions.

    Attributes:
        id: its name in the file.
        group: whom it is for.
        actions: what it allows, as listed.
        branch_scope: where, by the branch of a request; None for everywhere.
        target_branch_scope: where, by the branch a request would change; None for everywhere.
    """

    id: str
    group: str
    actions: tuple[Action, ...]
    branch_scope: Scope | None = None
    target_branch_scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The content of a policy file.

    Attributes:
        groups: actors by the name of their group.
        protected_branches: names of branches that scopes tell from others.
        rules: what is allowed; nothing else is.
    """

    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]

    @property
    def actors(self) -> tuple[str, ...]:
        """Everybody in a group, in order."""
        return tuple(sorted({actor for members in self.groups.values() for actor in members}))

    def kinds(self) -> frozenset[Kind]:
        """What the rules are for; empty where there are none."""
        return frozenset(
            Kind.SERVER if action in SERVER_ACTIONS else Kind.GRAPH for rule in self.rules for action in rule.actions
        )
