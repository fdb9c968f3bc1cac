"""An error for people: what went wrong, where, and what to do."""

from omnigraph import errors
from omnigraph.storage.object_store import StoreRefused

_ADVICE = {
    "branch_not_found": "see the branches there are: omnigraph branch list",
    "branch_exists": "choose another name, or delete that branch first",
    "already_initialized": "choose another place, or use the graph that is there",
    "tag_not_found": "see the tags there are: omnigraph tag list",
    "tag_exists": "choose another name, or delete that tag first",
    "point_not_found": "see what there is: omnigraph branch list, omnigraph tag list, omnigraph commit list",
    "entity_not_found": "look for a misspelled id, or for another branch",
    "blob_is_null": "choose an entity that has one, or another branch",
    "blob_range": "see how large it is: omnigraph blob stat",
    "data_not_found": "look for a misspelled path, or put a pattern in quotes",
    "too_many_rejects": "correct the records that were put aside, or allow more with --max-rejects N",
    "no_answer": "see that the server runs and its address is right, then run it again",
    "bad_configuration": "correct that file",
    "output_unwritable": "name another file with --out",
    "type_not_found": "see the types there are: omnigraph schema show",
    # These messages say it themselves.
    "disk_full": "",
    "no_java": "",
    "spark_job_failed": "",
    "spark_memory": "",
    "spark_not_started": "see that the master is right and its address can be reached",
    "spark_session_differs": "",
    "rejects_folder": "",
    "no_address": "",
    "graph_not_found": "",
    "cluster_managed": "",
    "policy_tests_failed": "",
    "format_newer": "",
    "init_unfinished": "",
    "fence_mismatch": "",
    "clock_ahead": "compare both times with a clock that is right",
    "cluster_state_missing": "",
    "commit_not_found": "see the commits there are: omnigraph commit list",
    "merge_conflicts": "see them with --preview, then decide: --prefer source|target, --by property or --resolve FILE",
    "too_busy": "others write the same things; run it again",
    "read_set_conflict": "look at what changed, then run it again",
    "key_conflict": "use --mode merge to replace what is there",
    "precondition_failed": "read the branch again, decide anew, and give its head commit",
    "read_only": "open the graph for writing",
    "version_reclaimed": "that state was pruned; read a newer commit",
}
_BY_CLASS: tuple[tuple[type[errors.GraphError], str], ...] = (
    (errors.ParseError, "correct the text"),
    (errors.ConstraintError, "correct the rows, or the schema"),
    (errors.OutcomeUnknownError, "look at the newest commits before running it again: omnigraph commit list"),
    (StoreRefused, "look for a misspelled address, or see what you may do there"),
    (errors.UnavailableError, "see that the storage can be reached, then run it again"),
    (errors.ConflictError, "run it again on the newest state"),
    (errors.LimitError, "ask for less at once"),
    (errors.AlreadyExistsError, "choose another name"),
    (errors.NotFoundError, "look for a misspelled name: omnigraph stats tells what there is"),
    (errors.FormatError, "see what else is damaged, and what can be done about it: omnigraph verify"),
    (errors.PermissionDeniedError, "ask whoever runs the server, or log in as somebody else: omnigraph login"),
    (errors.InternalError, "this is a fault of omnigraph: run it again with --debug and report what it prints"),
)
# Where nothing better is known: what each command is asked for most.
_BY_COMMAND = {
    "load": "correct the file, or put bad records aside with --rejects DIR",
    "schema apply": "see what it would do, step by step: omnigraph schema plan",
    "viz query": "draw a query that only reads",
}
# What is wrong with the words themselves, whatever the command is asked for most.
_ABOUT_THE_WORDS = frozenset({"load_option"})


def report(error: Exception, *, where: str | None, command: str | None = None) -> str:
    """The lines that tell of an error.

    Args:
        error: what went wrong.
        where: the graph it is about.
        command: what was being done.
    """
    lines = [f"error: {_said(error)}"]
    if where is not None:
        lines.append(f"   at: {where}")
    advice = _advice(error, command)
    if advice:
        lines.append(f"  try: {advice}")
    lines += [f" note: {note}" for note in getattr(error, "__notes__", ())]
    return "\n".join(lines)


def _said(error: Exception) -> str:
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"


def _advice(error: Exception, command: str | None) -> str:
    if not isinstance(error, errors.GraphError):
        return "see that this machine lets you read and write there, then run it again"
    if isinstance(error, errors.ParseError) and error.hint:
        return ""  # its report ends with it
    found = _ADVICE.get(error.code)
    if found is not None:
        return found
    for kind, advice in _BY_CLASS:
        if isinstance(error, kind):
            return advice
    if command is None:
        return ""
    usual = f"see what it takes: omnigraph {command} --help"
    return usual if error.code in _ABOUT_THE_WORDS else _BY_COMMAND.get(command, usual)
