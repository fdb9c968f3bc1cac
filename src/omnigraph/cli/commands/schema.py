"""`omnigraph schema …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, add_prune_previous, read_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import plan_document


def _show_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    add_json(parser)


def _show(call: Call) -> int:
    with call.asked() as graph:
        text = graph.schema_text(branch=call.args.branch or "main")
    return call.show({"schema_source": text}, text.removesuffix("\n"))


def _change_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--schema", metavar="FILE", required=True, help="the schema the graph is to have")
    parser.add_argument(
        "--allow-data-loss", action="store_true", help="what is dropped shall be gone from older commits too"
    )
    parser.add_argument(
        "--validated", action="store_true", help="make changes too that the data must allow, having looked"
    )
    add_branch(parser)
    add_json(parser)


def _apply_arguments(parser: ArgumentParser) -> None:
    _change_arguments(parser)
    add_prune_previous(parser)


def _plan(call: Call) -> int:
    text = read_text(call.args.schema, "the schema")
    with call.graph() as graph:
        plan = graph.schema_plan(
            text,
            branch=call.args.branch or "main",
            allow_data_loss=call.args.allow_data_loss,
            validated=call.args.validated,
        )

        steps = plan_document(plan.steps)
        document = {
            "uri": graph.uri,
            "supported": steps["supported"],
            "step_count": len(plan.steps),
            "steps": steps["steps"],
        }
        return call.show(
            document,
            f"schema plan for {graph.uri}",
            f"supported: {'yes' if plan.supported else 'no'}",
            *_steps(plan),
        )


def _apply(call: Call) -> int:
    text = read_text(call.args.schema, "the schema")
    if call.scope.kind == "store":
        from omnigraph.cluster.owner import refuse_managed  # noqa: PLC0415  (loads obstore, and the help of a command no library: test_startup)

        refuse_managed(call.scope.address, "change the file that its cluster.yaml names as the schema")
    call.echo_target()
    with call.graph(read_only=False) as graph:
        done = graph.schema_apply(
            text,
            branch=call.args.branch or "main",
            allow_data_loss=call.args.allow_data_loss,
            validated=call.args.validated,
            actor=call.actor,
            prune_previous=call.args.prune_previous,
        )
        return call.show(
            {"uri": graph.uri, **done.to_dict()},
            f"schema apply for {graph.uri}",
            "supported: yes",
            f"applied: {'yes' if done.applied else 'no'}",
            f"graph_manifest_version: {done.number}",
            *_steps(done.plan),
        )


def _steps(plan: SchemaPlan) -> list[str]:
    return [f"- {step}" for step in plan.steps] or ["no schema changes"]


COMMANDS = {
    "show": Command(_show, _show_arguments, "  omnigraph schema show ./library"),
    "plan": Command(_plan, _change_arguments, "  omnigraph schema plan ./library --schema next.pg"),
    "apply": Command(_apply, _apply_arguments, "  omnigraph schema apply ./library --schema next.pg"),
}
