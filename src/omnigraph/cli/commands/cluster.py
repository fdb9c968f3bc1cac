"""Control a cluster, and check its policies: `cluster …`, `policy …`."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from omnigraph.cli.arguments import add_json
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.validation import read_text
from omnigraph.cluster.diagnostics import Outcome
from omnigraph.errors import InvalidRequestError, NotFoundError


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="DIR", default=".", help="folder of cluster.yaml; the current one by default"
    )
    add_json(parser)


def _approve_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("resource", metavar="RESOURCE", help="resource to delete, like graph.knowledge")
    _arguments(parser)


def _unlock_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("lock_id", metavar="LOCK_ID", help="id of the lock, from the error message")
    _arguments(parser)


def _run(context: CommandContext, command: Callable[[Path], Outcome]) -> int:
    outcome = command(Path(context.args.config))
    context.show(outcome.document, *outcome.lines())
    return 0 if outcome.is_ok else 1


def _actor(context: CommandContext) -> str | None:
    return context.args.global_as or context.config.actor


def _validate(context: CommandContext) -> int:
    from omnigraph.cluster.desired import validate  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    return _run(context, validate)


def _plan(context: CommandContext) -> int:
    from omnigraph.cluster.commands import plan  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, plan)


def _apply(context: CommandContext) -> int:
    from omnigraph.cluster.apply import apply  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, lambda folder: apply(folder, actor=_actor(context)))


def _status(context: CommandContext) -> int:
    from omnigraph.cluster.commands import status  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, status)


def _refresh(context: CommandContext) -> int:
    from omnigraph.cluster.commands import refresh  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, refresh)


def _import(context: CommandContext) -> int:
    from omnigraph.cluster.commands import import_  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, import_)


def _approve(context: CommandContext) -> int:
    from omnigraph.cluster.commands import approve  # noqa: PLC0415  (imports lance; help must not: test_startup)

    actor = _actor(context)
    if actor is None:
        raise InvalidRequestError(
            "an approval needs an actor; give --as ACTOR, or set operator.actor in the configuration"
        )
    return _run(context, lambda folder: approve(folder, context.args.resource, actor=actor))


def _force_unlock(context: CommandContext) -> int:
    from omnigraph.cluster.commands import force_unlock  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return _run(context, lambda folder: force_unlock(folder, context.args.lock_id))


def _validate_policies(context: CommandContext) -> int:
    from omnigraph.cluster.access import read_policies  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    root, graph = context.cluster()
    found = [bundle for bundle in read_policies(root) if graph is None or graph in bundle.applies_to]
    if not found:
        raise NotFoundError(
            "the cluster has no policies" if graph is None else f"there is no policy for graph '{graph}'",
            code="policy_not_found",
        )
    documents = [{"bundle": bundle.name, "actors": len(bundle.policy().rules.actors)} for bundle in found]
    lines = (f"policy valid: bundle '{document['bundle']}' [{document['actors']} actors]" for document in documents)
    return context.show({"ok": True, "policies": documents}, *lines)


def _test_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tests", metavar="FILE", required=True, help="YAML file of cases and expected decisions")
    add_json(parser)


def _test_policies(context: CommandContext) -> int:
    from omnigraph.cluster.access import read_policies, select_policy  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)
    from omnigraph.policy.cases import Case, read_cases, run_cases  # noqa: PLC0415  (imports yaml)
    from omnigraph.policy.policy import Decision, Policy  # noqa: PLC0415  (imports yaml)

    cases = read_cases(read_text(context.args.tests, "the tests"))
    root, graph = context.cluster()
    found = read_policies(root)
    policies: dict[str, Policy] = {}

    def decide(case: Case) -> Decision:
        bundle = select_policy(found, graph, case.action)
        policy = policies.setdefault(bundle.name, bundle.policy())
        return policy.decide(case.actor, case.action, case.branch, case.target_branch, graph=graph or "")

    run_cases(cases, decide)
    return context.show({"ok": True, "cases": len(cases)}, f"policy tests passed: {len(cases)} cases")


def _explain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--actor", metavar="ACTOR", required=True, help="actor of the request")
    parser.add_argument("--action", metavar="ACTION", required=True, help="requested action, like change")
    parser.add_argument("--branch", metavar="BRANCH", help="branch that is read")
    parser.add_argument("--target-branch", metavar="BRANCH", help="branch that is created, changed or deleted")
    add_json(parser)


def _explain_policy(context: CommandContext) -> int:
    from omnigraph.cluster.access import read_policies, select_policy  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)
    from omnigraph.policy.policy import action_named  # noqa: PLC0415  (imports yaml)

    args = context.args
    action = action_named(args.action)
    root, graph = context.cluster()
    policy = select_policy(read_policies(root), graph, action).policy()
    decision = policy.decide(args.actor, action, args.branch, args.target_branch, graph=graph or "")
    document = {
        "decision": "allow" if decision.allowed else "deny",
        "actor": args.actor,
        "action": action.value,
        "branch": args.branch,
        "target_branch": args.target_branch,
        "matched_rule": decision.matched_rule_id,
        "message": decision.text,
    }
    return context.show(document, *(f"{key}: {value}" for key, value in document.items() if value is not None))


COMMANDS = {
    "cluster validate": Command(_validate, _arguments, "  omnigraph cluster validate --config ./brain"),
    "cluster import": Command(_import, _arguments, "  omnigraph cluster import --config ./brain"),
    "cluster plan": Command(_plan, _arguments, "  omnigraph cluster plan --config ./brain"),
    "cluster apply": Command(_apply, _arguments, "  omnigraph cluster apply --config ./brain --as me"),
    "cluster status": Command(_status, _arguments, "  omnigraph cluster status --config ./brain"),
    "cluster refresh": Command(_refresh, _arguments, "  omnigraph cluster refresh --config ./brain"),
    "cluster approve": Command(_approve, _approve_arguments, "  omnigraph cluster approve graph.knowledge --as me"),
    "cluster force-unlock": Command(
        _force_unlock, _unlock_arguments, "  omnigraph cluster force-unlock 01J9ZB6V3N4Q5R6S7T8V9W0X1Y"
    ),
    "policy validate": Command(_validate_policies, add_json, "  omnigraph policy validate --cluster ./brain"),
    "policy test": Command(
        _test_policies, _test_arguments, "  omnigraph policy test --cluster ./brain --tests policy.tests.yaml"
    ),
    "policy explain": Command(
        _explain_policy,
        _explain_arguments,
        "  omnigraph policy explain --cluster ./brain --actor act-a --action change --branch main",
    ),
}
