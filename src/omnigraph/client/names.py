"""The branches and the tags of a graph on a server."""

from collections.abc import Sequence

from omnigraph.api.naming import NamedCommits, NamedLines
from omnigraph.branch.point import Point
from omnigraph.branch.told import Tag
from omnigraph.client import values
from omnigraph.client.base import refuse_actor
from omnigraph.client.wire import Wire, segment
from omnigraph.errors import InvalidRequestError, NotFoundError


class RemoteBranches(NamedLines):
    """Named lines of commits; see `omnigraph.Branches`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _create(self, name: str, start: Point, actor: str | None) -> str:
        refuse_actor(actor, self._wire)
        body = {
            "name": name,
            "from": start.branch,
            "commit": start.commit,
            "number": start.number,
            "tag": start.tag,
            "at": values.instant(start.at),
        }
        return str(self._wire.act("POST", "branches", body)["graph_commit_id"])

    def _delete(self, name: str, actor: str | None, if_commit: str | None) -> None:
        refuse_actor(actor, self._wire)
        _ = self._wire.act("DELETE", f"branches/{_segment(name, 'branch')}", params={"if_commit": if_commit})["name"]

    def _names(self) -> Sequence[str]:
        found: list[str] = self._wire.get("branches")["branches"]
        return found

    def _is_there(self, name: str) -> bool:
        try:
            _ = self._wire.get("snapshot", branch=name)["datasets"]
        except NotFoundError:
            return False
        except InvalidRequestError as wrong:
            if wrong.code == "no_server":
                raise
            return False
        return True


class RemoteTags(NamedCommits):
    """Names for commits; see `omnigraph.Graph.tags`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _create(self, name: str, what: Point, actor: str | None) -> Tag:
        refuse_actor(actor, self._wire)
        body = {
            "name": name,
            "branch": what.branch,
            "commit": what.commit,
            "number": what.number,
            "at": values.instant(what.at),
        }
        return values.tag(self._wire.act("POST", "tags", body))

    def _read(self, name: str) -> Tag:
        return values.tag(self._wire.get(f"tags/{_segment(name, 'tag')}"))

    def _delete(self, name: str) -> None:
        self._wire.act("DELETE", f"tags/{_segment(name, 'tag')}")

    def _names(self) -> Sequence[str]:
        return [each["name"] for each in self._wire.get("tags")["tags"]]


def _segment(name: str, what: str) -> str:
    """A name as the last part of a path; one that is nothing at all would ask for something else."""
    if not name.strip():
        raise InvalidRequestError(f"a {what} has a name")
    return segment(name)
