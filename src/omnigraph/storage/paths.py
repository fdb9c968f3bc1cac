"""Where everything lies under a graph's root, and which names may stand there.

Log entries are named so that a listing, which is in order of names, gives the newest first.
"""

from functools import lru_cache
from urllib.parse import quote, unquote

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.storage.object_store import ObjectStore

STAMP = "__format.json"
SCHEMAS = "__schema/"
LOGS = "__manifest/log/"
TAGS = "__manifest/tags/"
CHECKPOINTS = "__manifest/checkpoint/"
FLOORS = "__manifest/floor/"
ANCESTRY = "__manifest/ancestry/"
LEASES = "__manifest/leases/"
CHANGES = "__manifest/changes/"
KEYS = "__manifest/keys/"
MIGRATIONS = "__manifest/migrations/"
RECOVERY = "__recovery/"
SPILL = "__spill/"
QUARANTINE = "__quarantine/"
NODES = "nodes/"
EDGES = "edges/"

_U64_MAX = 2**64 - 1
_ENTRY_DIGITS = 20
HINT = "hint"
MARK = "mark"
ENTRY_SUFFIX = ".json"

# A name of our own that the reference keeps for itself; refused so that nobody builds on it.
_RESERVED_BRANCHES = frozenset({"__schema_apply_lock__"})


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def branch_name(name: str) -> str:
    """The name as it is stored: trimmed, and refused when it cannot be one.

    Raises:
        InvalidRequestError: no text, empty, too long, reserved, or with characters no name may have.
    """
    if not isinstance(name, str):
        raise InvalidRequestError(f"branch name must be a text, got {type(name).__name__}")
    trimmed = name.strip()
    if not trimmed:
        raise InvalidRequestError("branch name cannot be empty")
    if any(ord(character) < 32 or ord(character) == 127 or 0xD800 <= ord(character) < 0xE000 for character in trimmed):
        raise InvalidRequestError(f"branch name {name!r} has a control character or half a surrogate pair in it")
    # A name is one path segment, in which every character but letters, digits, - _ and ~ takes three bytes or more.
    size = len(segment(trimmed))
    if size > limits.NAME_SEGMENT_BYTES_MAX:
        raise InvalidRequestError(
            f"branch name is too long: {trimmed[:40]!r}… takes {size} bytes as it is stored, "
            f"of at most {limits.NAME_SEGMENT_BYTES_MAX}"
        )
    if trimmed in _RESERVED_BRANCHES:
        raise InvalidRequestError(f"branch_create does not allow internal system ref '{trimmed}'")
    return trimmed


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def segment(name: str) -> str:
    """A name as one path segment: percent-encoded, and never `.` or `..`."""
    encoded = quote(name, safe="-_~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return encoded.replace(".", "%2E")


def unsegment(encoded: str) -> str:
    """The name behind a path segment."""
    return unquote(encoded)


def log_folder(branch: str) -> str:
    """The folder of a branch's log."""
    return f"{LOGS}{segment(branch)}/"


def entry_name(number: int) -> str:
    """The name of an entry: higher numbers sort first."""
    return f"{_U64_MAX - number:0{_ENTRY_DIGITS}d}"


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def entry(branch: str, number: int) -> str:
    """The path of one log entry."""
    return f"{log_folder(branch)}{entry_name(number)}{ENTRY_SUFFIX}"


def entry_number(path: str) -> int | None:
    """The number of the log entry at `path`; None for a file that is no entry."""
    name = path.rsplit("/", 1)[-1].removesuffix(ENTRY_SUFFIX)
    if len(name) != _ENTRY_DIGITS or not name.isascii() or not name.isdigit() or not path.endswith(ENTRY_SUFFIX):
        return None
    number = _U64_MAX - int(name)
    return number if number >= 1 else None


def hint(branch: str) -> str:
    """Where the last known entry number of a branch is noted, best effort."""
    return f"{log_folder(branch)}{HINT}"


def checkpoint_folder(branch: str) -> str:
    """The folder of a branch's checkpoints, the newest first."""
    return f"{CHECKPOINTS}{segment(branch)}/"


def checkpoint(branch: str, number: int) -> str:
    """The file that holds the `limits.CHECKPOINT_ENTRIES` entries up to and with `number`."""
    return f"{checkpoint_folder(branch)}{entry_name(number)}{ENTRY_SUFFIX}"


def branch_mark(branch: str, number: int, state: str) -> str:
    """An empty object beside the log of a branch whose folder's name says what is known of the branch at an entry.

    No branch is spelled with a dot, so it is no branch's folder; and it sorts just before its own branch's.
    """
    return f"{LOGS}{segment(branch)}.{number:0{_ENTRY_DIGITS}d}.{state}/{MARK}"


def parse_branch_mark(folder: str) -> tuple[str, int, str] | None:
    """Branch, entry number and state that the name of such a folder tells; None for any other folder."""
    encoded, _, rest = folder.partition(".")
    number, _, state = rest.partition(".")
    if len(number) != _ENTRY_DIGITS or not number.isascii() or not number.isdigit():
        return None
    name = unsegment(encoded)
    return (name, int(number), state) if segment(name) == encoded else None


def floor_folder(branch: str) -> str:
    """The folder of the floors of a branch, the highest first."""
    return f"{FLOORS}{segment(branch)}/"


def floor(branch: str, number: int) -> str:
    """The floor record: entries below `number` do not count."""
    return f"{floor_folder(branch)}{entry_name(number)}{ENTRY_SUFFIX}"


def ancestry_folder(branch: str) -> str:
    """The folder of what is known of the entries cut from a branch's log, the newest first."""
    return f"{ANCESTRY}{segment(branch)}/"


def ancestry(branch: str, number: int) -> str:
    """The file that holds the ancestry of commits whose entries below `number` were cut away."""
    return f"{ancestry_folder(branch)}{entry_name(number)}{ENTRY_SUFFIX}"


def lease(lease_id: str) -> str:
    """The lease of a reader on a commit."""
    return f"{LEASES}{lease_id}.json"


def tag_folder(tag: str) -> str:
    """The folder of a tag's own short log."""
    return f"{TAGS}{segment(tag)}/"


def tag_entry(tag: str, number: int) -> str:
    """The path of one entry of a tag."""
    return f"{tag_folder(tag)}{entry_name(number)}{ENTRY_SUFFIX}"


def change_file(commit: str) -> str:
    """Where a change set too large for its record lies."""
    return f"{CHANGES}{commit}.arrow"


def footprint_file(commit: str) -> str:
    """Where a footprint too large for its record lies."""
    return f"{CHANGES}{commit}.footprint"


def digests(table: str) -> str:
    """Where the checksums of a table's files are noted; `table` is its folder."""
    return f"__manifest/digests/{table.rsplit('/', 1)[-1]}.json"


def schema_text(digest: str) -> str:
    """The accepted schema text with this digest."""
    return f"{SCHEMAS}{digest}.pg"


def schema_resolved(digest: str) -> str:
    """The resolved form of that schema."""
    return f"{SCHEMAS}{digest}.json"


def intent(intent_id: str) -> str:
    """The intent of a write in progress."""
    return f"{RECOVERY}{intent_id}.json"


def intent_completed(intent_id: str) -> str:
    """Its second document, once everything is staged."""
    return f"{RECOVERY}{intent_id}.staged"


def intent_heartbeat(intent_id: str) -> str:
    """The object its writer renews while it lives."""
    return f"{RECOVERY}{intent_id}.beat"


def idempotency(branch: str, digest: str) -> str:
    """Where the first use of an idempotency key on a branch is noted."""
    return f"{KEYS}{segment(branch)}/{digest}.json"


def absolute(store: ObjectStore, path: str) -> str:
    """A path for messages: where it is, whole."""
    return f"{store.uri.rstrip('/')}/{path}"
