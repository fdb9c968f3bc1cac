"""Describe an error to a person: what went wrong, where, and what to do about it."""

import json

from omnigraph import errors
from omnigraph.storage.object_store import StoreRefused

_ADVICE = {
    "branch_not_found": "list the branches: omnigraph branch list",
    "branch_exists": "choose another name, or delete that branch first",
    "already_initialized": "choose another location, or use the existing graph",
    "tag_not_found": "list the tags: omnigraph tag list",
    "tag_exists": "choose another name, or delete that tag first",
    "point_not_found": "see what exists: omnigraph branch list, omnigraph tag list, omnigraph commit list",
    "entity_not_found": "check the spelling of the id, or try another branch",
    "blob_is_null": "choose an entity with a blob, or another branch",
    "blob_range": "see its size: omnigraph blob stat",
    "data_not_found": "check the path, or put a pattern in quotes",
    "too_many_rejects": "correct the rejected records, or allow more with --max-rejects N",
    "no_answer": "check that the server is running and its address is right, then try again",
    "bad_configuration": "correct the file",
    "output_unwritable": "name another file with --out",
    "type_not_found": "see the types: omnigraph schema show",
    # The messages of these contain the advice.
    "disk_full": "",
    "no_java": "",
    "spark_job_failed": "",
    "spark_memory": "",
    "spark_not_started": "check that the master is right and its address can be reached",
    "spark_session_differs": "",
    "rejects_folder": "",
    "no_address": "",
    "graph_not_found": "",
    "cluster_managed": "",
    "policy_tests_failed": "",
    "format_newer": "",
    "init_unfinished": "",
    "fence_mismatch": "",
    "clock_ahead": "compare both times with a correct clock",
    "cluster_state_missing": "",
    "commit_not_found": "list the commits: omnigraph commit list",
    "merge_conflicts": "see them with --preview, then choose: --prefer source|target, --by property or --resolve FILE",
    "too_busy": "other writers change the same data; try again",
    "read_set_conflict": "check what changed, then try again",
    "key_conflict": "use --mode merge to replace existing entities",
    "precondition_failed": "read the branch again and give its head commit",
    "read_only": "open the graph for writing",
    "version_reclaimed": "the state was pruned; read a newer commit",
}
_BY_CLASS: tuple[tuple[type[errors.GraphError], str], ...] = (
    (errors.ParseError, "correct the text"),
    (errors.ConstraintError, "correct the rows, or the schema"),
    (errors.OutcomeUnknownError, "check the newest commits before trying again: omnigraph commit list"),
    (StoreRefused, "check the address and your permissions there"),
    (errors.UnavailableError, "check that the storage can be reached, then try again"),
    (errors.ConflictError, "try again on the newest state"),
    (errors.LimitError, "request less at once"),
    (errors.AlreadyExistsError, "choose another name"),
    (errors.NotFoundError, "check the name: omnigraph stats shows what exists"),
    (errors.FormatError, "see what is damaged and what can be done: omnigraph verify"),
    (errors.PermissionDeniedError, "ask the administrator of the server, or use another token: omnigraph login"),
    (errors.InternalError, "this is a bug in omnigraph: run it again with --debug and report the output"),
)
# The most likely advice for a command, where nothing more specific is known.
_BY_COMMAND = {
    "load": "correct the file, or skip bad records with --rejects DIR",
    "schema apply": "see its steps first: omnigraph schema plan",
    "viz query": "use a query that only reads",
}
# Errors in the arguments, for which only the help of the command is advice.
_ARGUMENT_ERRORS = frozenset({"load_option"})


def report(error: Exception, *, where: str | None, command: str | None = None) -> str:
    """Return the lines that describe an error.

    Args:
        error: what went wrong; its code and class decide the advice.
        where: the address of the graph it occurred on.
        command: the name of the command.
    """
    lines = [f"error: {_message(error)}"]
    if where is not None:
        lines.append(f"   at: {where}")
    advice = _advice(error, command)
    if advice:
        lines.append(f"  try: {advice}")
    lines += [f" note: {note}" for note in getattr(error, "__notes__", ())]
    return "\n".join(lines)


def report_json(error: Exception, *, where: str | None, command: str | None = None) -> str:
    """Return an error as one line of JSON: the message, the stable code, the address and the advice."""
    code = error.code if isinstance(error, errors.GraphError) else "io"
    document = {"error": _message(error), "code": code, "at": where, "try": _advice(error, command)}
    return json.dumps({key: value for key, value in document.items() if value}, ensure_ascii=False)


def _message(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"


def _advice(error: Exception, command: str | None) -> str:
    if not isinstance(error, errors.GraphError):
        return "check the permissions of the file or folder, then try again"
    if isinstance(error, errors.ParseError) and error.hint:
        return ""  # the message ends with it
    advice = _ADVICE.get(error.code)
    if advice is not None:
        return advice
    for error_class, general_advice in _BY_CLASS:
        if isinstance(error, error_class):
            return general_advice
    if command is None:
        return ""
    usage = f"see the arguments: omnigraph {command} --help"
    return usage if error.code in _ARGUMENT_ERRORS else _BY_COMMAND.get(command, usage)
