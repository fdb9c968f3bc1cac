"""The content of a policy: groups of actors, protected branches, and rules that allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """An action that a policy can allow."""

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
    """The branches that a rule applies to."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


class Kind(StrEnum):
    """The scope of a policy file, as messages name it: graphs, or the server."""

    GRAPH = "Graph"
    SERVER = "Server"


SERVER_ACTIONS = frozenset({Action.GRAPH_LIST})
BRANCH_ACTIONS = frozenset({Action.READ, Action.EXPORT, Action.CHANGE})
TARGET_ACTIONS = frozenset({Action.BRANCH_CREATE, Action.SCHEMA_APPLY, Action.BRANCH_DELETE, Action.BRANCH_MERGE})


@dataclass(frozen=True, slots=True)
class Rule:
    """Allow a group of actors some actions.

    Attributes:
        id: unique in the file.
        group: the name of the group.
        actions: in the order of the file.
        branch_scope: applies to `branch` of a request; None for no condition.
        target_branch_scope: applies to `target_branch` of a request; None for no condition.
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
        groups: ids of actors by group.
        protected_branches: the branches of the scope `protected`.
        rules: everything that no rule allows is denied.
    """

    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]

    @property
    def actors(self) -> tuple[str, ...]:
        """The actors of all groups, sorted."""
        return tuple(sorted({actor for members in self.groups.values() for actor in members}))

    def kinds(self) -> frozenset[Kind]:
        """Return the kinds of the rules; empty if there are no rules."""
        return frozenset(
            Kind.SERVER if action in SERVER_ACTIONS else Kind.GRAPH for rule in self.rules for action in rule.actions
        )
