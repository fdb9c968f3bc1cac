"""Files that say they are packed, and are not, or only in part: it is said which, and nothing is loaded."""

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import InvalidRequestError

TEXTS = {"jsonl": '{"type": "Person", "data": {"name": "Ada"}}\n', "csv": "name\nAda\n"}
PACKINGS: dict[str, Literal["gzip", "zstd"]] = {"gz": "gzip", "zst": "zstd"}


@pytest.mark.parametrize("suffix", PACKINGS)
@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("damage", ["none", "not packed", "cut off"])
def test_a_file_that_is_not_packed_as_it_says_is_named(tmp_path: Path, suffix: str, form: str, damage: str) -> None:
    packed = pa.compress(TEXTS[form].encode(), codec=PACKINGS[suffix], asbytes=True)
    path = tmp_path / f"people.{form}.{suffix}"
    path.write_bytes({"none": packed, "not packed": TEXTS[form].encode(), "cut off": packed[:-9]}[damage])
    type_name = "Person" if form == "csv" else None
    with omnigraph.init(f"memory://{tmp_path.name}", "node Person { name: String @key }") as graph:
        if damage == "none":
            graph.load(path, mode="append", engine="local", type_name=type_name)
        else:
            with pytest.raises(InvalidRequestError, match=rf"people\.{form}\.{suffix} is not \w+, or is cut off"):
                graph.load(path, mode="append", engine="local", type_name=type_name)
        assert graph.count("Person") == (1 if damage == "none" else 0)
