"""Taking index segments along to a version they were not built on.

A segment names rows by address, so it holds in every version that has the same fragments under the same numbers,
whatever was deleted from them or added beside them since.
"""

from collections.abc import Iterable, Mapping, Sequence

from lance import LanceOperation
from lance.dataset import Index

from omnigraph.storage.tables.effect import FragmentKey
from omnigraph.storage.tables.files import Step
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.indexes import SegmentChange


def segment_changes(steps: Iterable[Step]) -> dict[str, SegmentChange]:
    """What steps did to indexes, all together.

    Args:
        steps (Iterable[Step]): the oldest first.

    Returns:
        dict[str, SegmentChange]: by the index's name.
    """
    added: dict[str, Index] = {}
    removed: dict[str, Index] = {}
    for step in steps:
        if isinstance(step.operation, LanceOperation.CreateIndex):
            for segment in step.operation.removed_indices:
                if added.pop(segment.uuid, None) is None:
                    removed[segment.uuid] = segment
            added |= {segment.uuid: segment for segment in step.operation.new_indices}
    return {
        name: SegmentChange(
            tuple(segment for segment in added.values() if segment.name == name),
            tuple(segment for segment in removed.values() if segment.name == name),
        )
        for name in sorted({segment.name for segment in (*added.values(), *removed.values())})
    }


def holds_in(
    change: SegmentChange, built_on: Mapping[int, FragmentKey], there: Mapping[int, FragmentKey], onto: Handle
) -> bool:
    """Whether a change to an index means the same in another version.

    Args:
        change (SegmentChange): of one index.
        built_on (Mapping[int, FragmentKey]): the fragments of the version it was built on, by number.
        there (Mapping[int, FragmentKey]): the fragments that the other version has, or will have.
        onto (Handle): a version with the indexes of the other one.

    Returns:
        bool: whether what it removes is there, what it adds covers fragments that are there, and nobody else covers
            them.
    """
    names = {segment.name for segment in (*change.added, *change.removed)}
    present = {
        segment.uuid: set(segment.fragment_ids)
        for index in onto.dataset.describe_indices()
        if index.name in names
        for segment in index.segments
    }
    gone = {segment.uuid for segment in change.removed}
    if not gone <= present.keys():
        return False
    covered = _fragments_of(change.added)
    others = set().union(*(fragments for uuid, fragments in present.items() if uuid not in gone))
    # A segment may also mention fragments that were gone when it was built: none may have their numbers now.
    return covered.isdisjoint(others) and all(built_on.get(number) == there.get(number) for number in covered)


def _fragments_of(segments: Sequence[Index]) -> set[int]:
    return {number for segment in segments for number in segment.fragment_ids}
