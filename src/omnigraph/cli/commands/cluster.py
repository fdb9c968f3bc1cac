"""`omnigraph cluster …`."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cluster.outcome import Outcome
from omnigraph.errors import InvalidRequestError


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", metavar="DIR", default=".", help="the folder of cluster.yaml; this one by default")
    add_json(parser)


def _approve_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("resource", metavar="RESOURCE", help="what is to go, like graph.knowledge")
    _arguments(parser)


def _unlock_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("lock_id", metavar="LOCK_ID", help="of the lock, as the message names it")
    _arguments(parser)


def _told(call: Call, command: Callable[[Path], Outcome]) -> int:
    outcome = command(Path(call.args.config))
    call.show(outcome.document, *outcome.lines())
    return 0 if outcome.is_ok else 1


def _actor(call: Call) -> str | None:
    return call.args.global_as or call.config.actor


def _validate(call: Call) -> int:
    from omnigraph.cluster.validate import validate  # noqa: PLC0415  (loads pyarrow, and the help of a command no library: test_startup)

    return _told(call, validate)


def _plan(call: Call) -> int:
    from omnigraph.cluster.plan import plan  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, plan)


def _apply(call: Call) -> int:
    from omnigraph.cluster.apply import apply  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, lambda folder: apply(folder, actor=_actor(call)))


def _status(call: Call) -> int:
    from omnigraph.cluster.observe import status  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, status)


def _refresh(call: Call) -> int:
    from omnigraph.cluster.observe import refresh  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, refresh)


def _import(call: Call) -> int:
    from omnigraph.cluster.observe import import_  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, import_)


def _approve(call: Call) -> int:
    from omnigraph.cluster.approve import approve  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    actor = _actor(call)
    if actor is None:
        raise InvalidRequestError("who approves? give --as ACTOR, or set operator.actor in the configuration")
    return _told(call, lambda folder: approve(folder, call.args.resource, actor=actor))


def _force_unlock(call: Call) -> int:
    from omnigraph.cluster.unlock import force_unlock  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    return _told(call, lambda folder: force_unlock(folder, call.args.lock_id))


COMMANDS = {
    "validate": Command(_validate, _arguments, "  omnigraph cluster validate --config ./brain"),
    "import": Command(_import, _arguments, "  omnigraph cluster import --config ./brain"),
    "plan": Command(_plan, _arguments, "  omnigraph cluster plan --config ./brain"),
    "apply": Command(_apply, _arguments, "  omnigraph cluster apply --config ./brain --as me"),
    "status": Command(_status, _arguments, "  omnigraph cluster status --config ./brain"),
    "refresh": Command(_refresh, _arguments, "  omnigraph cluster refresh --config ./brain"),
    "approve": Command(_approve, _approve_arguments, "  omnigraph cluster approve graph.knowledge --as me"),
    "force-unlock": Command(
        _force_unlock, _unlock_arguments, "  omnigraph cluster force-unlock 01J9ZB6V3N4Q5R6S7T8V9W0X1Y"
    ),
}
