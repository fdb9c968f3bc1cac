"""How some walks end: a data file is damaged, found, and put in quarantine."""

import os
from pathlib import Path

from tests.support.whole_system.base import left_by_a_sweep
from tests.support.whole_system.looks import Looks, contents, wanted

import omnigraph


class Damage(Looks):
    """Damage to one file, which costs rows of that file and nothing else."""

    def damage_and_quarantine(self) -> None:
        """Damage a data file that a head needs; afterwards every branch shows rows it had, and takes writes."""
        snapshot = self.graph.snapshot(branch=self.a_branch())
        names = {
            part.path
            for key in snapshot.table_versions
            for fragment in snapshot.lance_table(key).get_fragments()
            for part in fragment.data_files()
        }
        files = [file for file in Path(self.uri).glob("*/*/data/*.lance") if file.name in names]
        if not files:
            return
        file = self.chance.choice(sorted(files, key=lambda file: file.stat().st_mtime_ns))
        how = self.chance.choice(["flip", "cut", "remove"])
        self.trace.append(f"{how} {file.name}")
        if how == "remove":
            file.unlink()
        elif how == "cut":
            os.truncate(file, file.stat().st_size // 2)
        else:
            body = bytearray(file.read_bytes())
            body[self.chance.randrange(len(body))] ^= 1 << self.chance.randrange(8)
            file.write_bytes(bytes(body))
        self.graph.close()
        report = omnigraph.verify(self.uri, deep=True)
        assert not report.is_whole, "damage was not found"
        assert any(file.name in finding.path for finding in report.findings), report.findings
        omnigraph.verify(self.uri, deep=True, quarantine=True)
        with omnigraph.open(self.uri, options=self.options) as graph:
            for branch in self.history.heads:
                expected = wanted(self.history.state(branch))
                for name, rows in contents(graph.snapshot(branch=branch)).items():
                    made_up = {row_id: row for row_id, row in rows.items() if expected[name].get(row_id) != row}
                    assert not made_up, f"{branch} has rows of {name} that it never had: {made_up}"
                graph.write({"T": [{"name": "after"}]}, branch=branch)
            graph.sweep(older_than=0)
            left = left_by_a_sweep(graph)
            assert not left, f"a second sweep deletes {left}"
