"""`omnigraph policy …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_json, read_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import NotFoundError


def _validate(call: Call) -> int:
    from omnigraph.cluster.access import bundles  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    root, graph = call.cluster()
    found = [each for each in bundles(root) if graph is None or graph in each.applies_to]
    if not found:
        raise NotFoundError(
            "the cluster has no policies" if graph is None else f"there is no policy for graph '{graph}'",
            code="policy_not_found",
        )
    told = [{"bundle": each.name, "actors": len(each.policy().rules.actors)} for each in found]
    lines = (f"policy valid: bundle '{each['bundle']}' [{each['actors']} actors]" for each in told)
    return call.show({"ok": True, "policies": told}, *lines)


def _test_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tests", metavar="FILE", required=True, help="the cases: who asks for what, and what to expect"
    )
    add_json(parser)


def _test(call: Call) -> int:
    from omnigraph.cluster.access import bundles, deciding  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)
    from omnigraph.policy.cases import Case, read_cases, run_cases  # noqa: PLC0415  (loads yaml, and the help of a command no library: test_startup)
    from omnigraph.policy.policy import Decision, Policy  # noqa: PLC0415  (loads yaml, and the help of a command no library: test_startup)

    cases = read_cases(read_text(call.args.tests, "the tests"))
    root, graph = call.cluster()
    found = bundles(root)
    known: dict[str, Policy] = {}

    def decide(case: Case) -> Decision:
        bundle = deciding(found, graph, case.action)
        policy = known.setdefault(bundle.name, bundle.policy())
        return policy.decide(case.actor, case.action, case.branch, case.target_branch, graph=graph or "")

    run_cases(cases, decide)
    return call.show({"ok": True, "cases": len(cases)}, f"policy tests passed: {len(cases)} cases")


def _explain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--actor", metavar="ACTOR", required=True, help="who asks")
    parser.add_argument("--action", metavar="ACTION", required=True, help="for what, like change")
    parser.add_argument("--branch", metavar="BRANCH", help="where")
    parser.add_argument("--target-branch", metavar="BRANCH", help="which branch would be made, changed or deleted")
    add_json(parser)


def _explain(call: Call) -> int:
    from omnigraph.cluster.access import bundles, deciding  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)
    from omnigraph.policy.policy import action_named  # noqa: PLC0415  (loads yaml, and the help of a command no library: test_startup)

    args = call.args
    action = action_named(args.action)
    root, graph = call.cluster()
    policy = deciding(bundles(root), graph, action).policy()
    decision = policy.decide(args.actor, action, args.branch, args.target_branch, graph=graph or "")
    told = {
        "decision": "allow" if decision.allowed else "deny",
        "actor": args.actor,
        "action": action.value,
        "branch": args.branch,
        "target_branch": args.target_branch,
        "matched_rule": decision.matched_rule_id,
        "message": decision.text,
    }
    return call.show(told, *(f"{key}: {value}" for key, value in told.items() if value is not None))


COMMANDS = {
    "validate": Command(_validate, add_json, "  omnigraph policy validate --cluster ./brain"),
    "test": Command(_test, _test_arguments, "  omnigraph policy test --cluster ./brain --tests policy.tests.yaml"),
    "explain": Command(
        _explain,
        _explain_arguments,
        "  omnigraph policy explain --cluster ./brain --actor act-a --action change --branch main",
    ),
}
